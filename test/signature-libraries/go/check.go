package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// captured is one delivery; encoding/json reads base64 into bytes.
type captured struct {
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
	Secret  string            `json:"secret"`
}

var libraries = []struct {
	name   string
	verify func(body []byte, headers http.Header, secret string) error
}{
	{"stripe", verifyWithStripe},
	{"standardwebhooks", verifyWithStandardWebhooks},
	{"svix", verifyWithSvix},
}

// check verifies captured deliveries with each library, and returns whether all were accepted.
// The format is in ../README.md.
func check(input io.Reader) (bool, error) {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, 1<<20)
	number, rejected := 0, 0
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		number++
		var delivery captured
		if err := json.Unmarshal(lines.Bytes(), &delivery); err != nil {
			return false, fmt.Errorf("line %d is no captured delivery: %w", number, err)
		}
		headers := http.Header{}
		for name, value := range delivery.Headers {
			headers.Set(name, value)
		}
		for _, library := range libraries {
			if err := library.verify(delivery.Body, headers, delivery.Secret); err != nil {
				rejected++
				fmt.Printf("%d %s rejected: %v\n", number, library.name, err)
			} else {
				fmt.Printf("%d %s accepted\n", number, library.name)
			}
		}
	}
	return number > 0 && rejected == 0, lines.Err()
}
