module example.org/webhook-receiver

go 1.21.0

require (
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
	github.com/stripe/stripe-go/v84 v84.4.1
	github.com/svix/svix-webhooks v1.44.0
)

require gopkg.in/validator.v2 v2.0.1 // indirect
