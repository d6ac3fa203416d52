package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const bodyLimitBytes = 256 * 1024

type event struct {
	ID   string          `json:"id"`
	Type string          `json:"type"`
	Test bool            `json:"test"` // absent from genuine events
	Data json.RawMessage `json:"data"`
}

// seen remembers event ids in memory, for the example. In production, use a table with the id as its key, and
// write it in the transaction that does the work.
var seen sync.Map

// serve runs a webhook receiver until it fails: WEBHOOK_SECRET=whsec_… PORT=3000 ./receiver serve
func serve() error {
	secret := os.Getenv("WEBHOOK_SECRET")
	if secret == "" {
		return fmt.Errorf("WEBHOOK_SECRET is missing: set it to the secret shown when the webhook was created")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "3000"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: receive(secret), ReadTimeout: 10 * time.Second}
	return server.Serve(listener)
}

func receive(secret string) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodPost {
			http.Error(response, "POST only", http.StatusMethodNotAllowed)
			return
		}
		// The bytes exactly as they came: the signature covers them and not the JSON.
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, bodyLimitBytes))
		if err != nil {
			http.Error(response, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		if err := verifyWithStandardWebhooks(body, request.Header, secret); err != nil {
			http.Error(response, "the signature does not verify", http.StatusBadRequest)
			return
		}
		var received event
		if err := json.Unmarshal(body, &received); err != nil {
			http.Error(response, "no event", http.StatusBadRequest)
			return
		}
		// A test event is accepted like any other and never acted on: the ids in its data name nothing.
		if !received.Test && isNew(received.ID) {
			handle(received)
		}
		response.WriteHeader(http.StatusNoContent) // a repeat is answered with success too, or it would be sent again
	}
}

func isNew(id string) bool {
	_, isRepeat := seen.LoadOrStore(id, true)
	return !isRepeat
}

// handle is your part, and is called once for each genuine event. Put slow work into a queue: the response is
// due within 10 seconds.
func handle(received event) {
	fmt.Println(received.Type, received.ID)
}
