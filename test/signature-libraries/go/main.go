// Command receiver shows how to receive webhooks: `receiver serve` listens, and `receiver check` verifies
// captured deliveries.
package main

import (
	"fmt"
	"os"
)

func main() {
	command := ""
	if len(os.Args) == 2 {
		command = os.Args[1]
	}
	switch command {
	case "serve":
		fail(serve())
	case "check":
		allAccepted, err := check(os.Stdin)
		fail(err)
		if !allAccepted {
			os.Exit(1)
		}
	default:
		fail(fmt.Errorf("usage: receiver serve, or receiver check < captured.jsonl"))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
