package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

const bodyLimitBytes = 256 * 1024

// serve runs a webhook receiver until it fails: WEBHOOK_SECRET=whsec_… PORT=3000 ./receiver serve
func serve() error {
	all, err := readSecrets(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		return err
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
	server := &http.Server{Handler: receive(all), ReadTimeout: 10 * time.Second}
	return server.Serve(listener)
}

func receive(all secrets) http.HandlerFunc {
	known := &events{seen: map[string]bool{}, latest: map[string]position{}}
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
		endpoint := request.Header.Get("webhook-endpoint")
		if !isGenuine(body, request.Header, all.of(endpoint)) {
			http.Error(response, "the signature does not verify", http.StatusBadRequest)
			return
		}
		var received event
		if err := json.Unmarshal(body, &received); err != nil {
			http.Error(response, "no event", http.StatusBadRequest)
			return
		}
		sequence, _ := strconv.ParseInt(request.Header.Get("webhook-sequence"), 10, 64) // 0 without the header
		if known.isDue(received, endpoint, sequence) {
			handle(received)
		}
		response.WriteHeader(http.StatusNoContent) // what is not due is answered with success too, or it comes again
	}
}

func isGenuine(body []byte, headers http.Header, own []string) bool {
	for _, secret := range own {
		if verifyWithStandardWebhooks(body, headers, secret) == nil {
			return true
		}
	}
	return false
}

// handle is your part, and is called once for each genuine event. Put slow work into a queue: the response is
// due within 10 seconds.
func handle(received event) {
	fmt.Println(received.Type, received.ID)
}
