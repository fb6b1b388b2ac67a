// A web server that says who it is and who asks, and its own client: what a network is tried with.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "get" {
		get(os.Args[2])
		return
	}
	name, _ := os.Hostname()
	http.HandleFunc("/", func(out http.ResponseWriter, request *http.Request) {
		from, _, _ := net.SplitHostPort(request.RemoteAddr)
		fmt.Fprintf(out, "%s answers %s\n", name, from)
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":8080", nil))
	os.Exit(1)
}

func get(url string) {
	client := http.Client{Timeout: 3 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer answer.Body.Close()
	io.Copy(os.Stdout, answer.Body)
}
