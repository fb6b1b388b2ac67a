// A web server that says who it is and who asks, and its own client: what a network is tried with.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
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
	server := http.Server{Addr: ":8080"}
	ended := make(chan struct{})
	go func() {
		// Who has asked is answered before the server goes.
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		<-signals
		server.Shutdown(context.Background())
		close(ended)
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-ended
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
