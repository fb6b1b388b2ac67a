// Migrates Corefiles with the library that Cluster API uses: one JSON request per line in, one answer per line out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/coredns/corefile-migration/migration"
)

type request struct{ From, To, Corefile string }

type answer struct {
	Corefile string   `json:"corefile,omitempty"`
	Error    string   `json:"error,omitempty"`
	Panic    string   `json:"panic,omitempty"`
	Versions []string `json:"versions,omitempty"`
}

func migrate(r request) (a answer) {
	defer func() {
		if why := recover(); why != nil {
			a = answer{Panic: fmt.Sprint(why)}
		}
	}()
	if r.From == "" {
		return answer{Versions: migration.ValidVersions()}
	}
	corefile, err := migration.Migrate(r.From, r.To, r.Corefile, false)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Corefile: corefile}
}

func main() {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	answers := json.NewEncoder(out)
	for in.More() {
		var r request
		if err := in.Decode(&r); err != nil {
			panic(err)
		}
		if err := answers.Encode(migrate(r)); err != nil {
			panic(err)
		}
	}
}
