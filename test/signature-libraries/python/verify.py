"""Three ways to verify a delivery: copy the one for your library. Each raises when the delivery is not genuine.

`body` is the received bytes, before any parsing. `headers` have lower-case names. `secret` is the whole text,
including `whsec_`.
"""


def verify_with_standardwebhooks(body: bytes, headers: dict[str, str], secret: str) -> None:
    from standardwebhooks import Webhook

    Webhook(secret).verify(body, headers)


def verify_with_svix(body: bytes, headers: dict[str, str], secret: str) -> None:
    from svix.webhooks import Webhook

    Webhook(secret).verify(body, headers)


def verify_with_stripe(body: bytes, headers: dict[str, str], secret: str) -> None:
    import stripe

    # Not Webhook.construct_event: that parses the event as a Stripe object, and it is none.
    stripe.WebhookSignature.verify_header(
        body.decode("utf-8"), headers.get("service-signature", ""), secret, tolerance=300
    )
