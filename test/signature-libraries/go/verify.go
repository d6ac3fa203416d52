package main

import (
	"net/http"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stripe/stripe-go/v84/webhook"
	svix "github.com/svix/svix-webhooks/go"
)

// Three ways to verify a delivery: copy the one for your library. Each returns an error when the delivery is
// not genuine.
// The body is the bytes as they came, before any parsing; the secret is the whole of it, from whsec_ on.

func verifyWithStandardWebhooks(body []byte, headers http.Header, secret string) error {
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return verifier.Verify(body, headers)
}

func verifyWithSvix(body []byte, headers http.Header, secret string) error {
	verifier, err := svix.NewWebhook(secret)
	if err != nil {
		return err
	}
	return verifier.Verify(body, headers)
}

// Not webhook.ConstructEvent: that expects the members of a Stripe event, and this event has others.
func verifyWithStripe(body []byte, headers http.Header, secret string) error {
	return webhook.ValidatePayload(body, headers.Get("Service-Signature"), secret)
}
