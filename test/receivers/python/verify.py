"""Three ways to verify a delivery: copy the one whose library you have. Each raises when the delivery is not to be believed.

`body` is the bytes as they came, before any parsing; `headers` are by lower-case name; `secret` is the whole of it, from `whsec_` on.
"""


def verify_with_standardwebhooks(body: bytes, headers: dict[str, str], secret: str) -> None:
    from standardwebhooks import Webhook

    Webhook(secret).verify(body, headers)


def verify_with_svix(body: bytes, headers: dict[str, str], secret: str) -> None:
    from svix.webhooks import Webhook

    Webhook(secret).verify(body, headers)


def verify_with_stripe(body: bytes, headers: dict[str, str], secret: str) -> None:
    import stripe

    # Not Webhook.construct_event: that makes a Stripe object of the event, and ours is none.
    stripe.WebhookSignature.verify_header(
        body.decode("utf-8"), headers.get("service-signature", ""), secret, tolerance=300
    )
