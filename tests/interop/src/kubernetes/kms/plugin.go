// A KMS v2 plug-in on upstream's gRPC service, with AES-GCM keys from a file: `ID HEX`, one per line. The last one
// encrypts. The file is read at every call, so that a line added to it is a rotation.
package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/kms/pkg/service"
)

type plugin struct{ file string }

type key struct {
	id   string
	aead cipher.AEAD
}

func (p plugin) keys() ([]key, error) {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return nil, err
	}
	var found []key
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		id, secret, _ := strings.Cut(line, " ")
		bytes, err := hex.DecodeString(secret)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(bytes)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		found = append(found, key{id, aead})
	}
	return found, nil
}

func (p plugin) current() (key, error) {
	keys, err := p.keys()
	if err != nil {
		return key{}, err
	}
	return keys[len(keys)-1], nil
}

func (p plugin) Status(context.Context) (*service.StatusResponse, error) {
	current, err := p.current()
	if err != nil {
		return nil, err
	}
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: current.id}, nil
}

func (p plugin) Encrypt(_ context.Context, uid string, data []byte) (*service.EncryptResponse, error) {
	current, err := p.current()
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, current.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	fmt.Println("encrypt", current.id, uid)
	return &service.EncryptResponse{
		Ciphertext:  current.aead.Seal(nil, nonce, data, nil),
		KeyID:       current.id,
		Annotations: map[string][]byte{"nonce.kms.example.org": nonce},
	}, nil
}

func (p plugin) Decrypt(_ context.Context, uid string, request *service.DecryptRequest) ([]byte, error) {
	keys, err := p.keys()
	if err != nil {
		return nil, err
	}
	fmt.Println("decrypt", request.KeyID, uid)
	for _, key := range keys {
		if key.id == request.KeyID {
			return key.aead.Open(nil, request.Annotations["nonce.kms.example.org"], request.Ciphertext, nil)
		}
	}
	return nil, errors.New("no such key")
}

func main() {
	server := service.NewGRPCService(os.Args[1], 10*time.Second, plugin{os.Args[2]})
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
