"""Reads WEBHOOK_SECRET: the secret of the only webhook, or `<webhook-endpoint>=whsec_…` for each of several.

Entries have spaces between. An endpoint may have two secrets, while one is being rotated.
"""

import re
from collections.abc import Callable

ENTRY = re.compile(r"(?:([^=]+)=)?(whsec_[A-Za-z0-9+/]{32})")


def read_secrets(text: str) -> Callable[[str], list[str]]:
    """Returns a function that finds the secrets of an endpoint. Raises ValueError: a sentence without a secret."""
    if re.search(r"[^\t\n\r -~]", text):
        raise ValueError("WEBHOOK_SECRET has a byte order mark or another invisible character: save it without one.")
    if re.search("[\"'`]", text):
        raise ValueError("WEBHOOK_SECRET has quotes: remove them.")
    by_endpoint: dict[str, list[str]] = {}
    for entry in text.split():
        match = ENTRY.fullmatch(entry)
        if match is None:
            raise ValueError(
                "WEBHOOK_SECRET contains what is not a secret: copy all of it, from whsec_ to its end."
            )
        by_endpoint.setdefault(match[1] or "", []).append(match[2])
    if not by_endpoint:
        raise ValueError("WEBHOOK_SECRET is missing: set it to the secret shown when the webhook was created.")
    return lambda endpoint: by_endpoint.get(endpoint) or by_endpoint.get("", [])
