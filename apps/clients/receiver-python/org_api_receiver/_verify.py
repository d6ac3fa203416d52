from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Iterable, Mapping

_SECRET = re.compile(r"whsec_([A-Za-z0-9+/]{32})")
_TOLERANCE_SECONDS = 300


class InvalidDelivery(Exception):
    """A delivery that is not genuine, or no event: answer 400."""


def verify(headers: Mapping[str, str], body: bytes, secrets: Iterable[str], now: float) -> None:
    """Checks the signature by Standard Webhooks, with any of the secrets.

    `headers` have lower-case names, `body` is the bytes as they came, `now` is in seconds since 1970. Raises
    InvalidDelivery; and ValueError when a secret is none, with a sentence that contains no secret.
    """
    time, given = headers.get("webhook-timestamp", ""), headers.get("webhook-signature", "")
    if not re.fullmatch(r"[0-9]{1,12}", time) or abs(now - int(time)) > _TOLERANCE_SECONDS:
        raise InvalidDelivery("webhook-timestamp is more than five minutes from this clock.")
    signed = f"{headers.get('webhook-id', '')}.{time}.".encode() + body
    signatures = [part[3:].encode() for part in given.split(" ") if part.startswith("v1,")]
    for secret in secrets:
        expected = base64.b64encode(hmac.new(_read_key(secret), signed, hashlib.sha256).digest())
        if any(hmac.compare_digest(each, expected) for each in signatures):
            return
    raise InvalidDelivery("webhook-signature is by none of the secrets.")


def _read_key(secret: str) -> bytes:
    """Returns the key of a secret. White space around it is ignored."""
    if "\ufeff" in secret:
        raise ValueError("The secret has a byte order mark: save it without one.")
    if re.search("[\"'`]", secret):
        raise ValueError("The secret has quotes: remove them.")
    match = _SECRET.fullmatch(secret.strip())
    if match is None:
        raise ValueError("The secret is incomplete: copy all of it, from whsec_ to its end.")
    return base64.b64decode(match[1])
