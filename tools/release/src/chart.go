// Renders a packed chart as `helm template` does, with Helm's own loader and engine.
//
//	chart PACKAGE RELEASE NAMESPACE [VALUES]    VALUES: YAML that replaces defaults
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	chart, err := loader.Load(arguments[0])
	if err != nil {
		return err
	}
	if err := chart.Validate(); err != nil {
		return err
	}
	values := chartutil.Values{}
	if len(arguments) > 3 {
		if values, err = chartutil.ReadValues([]byte(arguments[3])); err != nil {
			return err
		}
	}
	options := chartutil.ReleaseOptions{Name: arguments[1], Namespace: arguments[2], Revision: 1, IsInstall: true}
	complete, err := chartutil.ToRenderValues(chart, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	rendered, err := engine.Engine{Strict: true}.Render(chart, complete)
	if err != nil {
		return err
	}
	names := []string{}
	for name := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("---\n# %s\n%s\n", name, rendered[name])
	}
	return nil
}
