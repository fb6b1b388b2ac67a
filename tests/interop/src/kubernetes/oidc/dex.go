// Dex with one client, one user with a password, and everything in memory. Each start has new signing keys.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address, issuer, certificate, key, web string) error {
	log := logrus.New()
	hash, err := bcrypt.GenerateFromPassword([]byte("sesame"), bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	store := memory.New(log)
	store = storage.WithStaticClients(store, []storage.Client{{
		ID: "capstan", Secret: "client-secret", Name: "capstan", RedirectURIs: []string{"http://127.0.0.1/callback"},
	}})
	store = storage.WithStaticPasswords(store, []storage.Password{{
		Email: "ada@engines.example", Hash: hash, Username: "ada", UserID: "1815",
	}}, log)
	store = storage.WithStaticConnectors(store, []storage.Connector{{
		ID: server.LocalConnector, Type: server.LocalConnector, Name: "Email",
	}})
	handler, err := server.NewServer(context.Background(), server.Config{
		Issuer:             issuer,
		Storage:            store,
		SkipApprovalScreen: true,
		IDTokensValidFor:   time.Hour,
		Web:                server.WebConfig{Dir: web},
		Logger:             log,
		PrometheusRegistry: prometheus.NewRegistry(),
	})
	if err != nil {
		return err
	}
	return http.ListenAndServeTLS(address, certificate, key, handler)
}
