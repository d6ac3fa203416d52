from __future__ import annotations

import os
import re
from typing import Callable, Optional
from urllib.parse import urlsplit

from ._generated import SERVERS

_SPACES = " \t\r\n\ufeff"


class Key:
    """An API key that no ``repr`` and no traceback with local variables shows."""

    __slots__ = ("_header",)

    def __init__(self, text: str) -> None:
        self._header: Callable[[], str] = lambda: "Bearer " + text

    def __repr__(self) -> str:
        return "<API key>"

    @property
    def header(self) -> str:
        return self._header()

    @property
    def region(self) -> str:
        return self._header()[11:13]


def read_key(given: Optional[str]) -> Key:
    """Returns a key without the spaces, quotes and byte order mark that files and shells add.

    Raises ValueError for what is no key, without quoting it.
    """
    key = (os.environ.get("ORG_API_KEY", "") if given is None else given).strip(_SPACES)
    if len(key) > 1 and key[0] == key[-1] and key[0] in "\"'":
        key = key[1:-1].strip(_SPACES)
    if not key:
        raise ValueError("There is no API key: pass key or set ORG_API_KEY.")
    if not re.fullmatch(r"aln_(us|ca)_[\x21-\x7e]+", key):
        raise ValueError("This is not an API key: keys begin with aln_us_ or aln_ca_.")
    return Key(key)


def read_base_url(key: Key, given: Optional[str]) -> str:
    """Raises ValueError for a URL that would show the key on its way, or that has more than a path."""
    url = urlsplit(given or os.environ.get("ORG_API_BASE_URL") or SERVERS[key.region])
    is_local = url.hostname in ("127.0.0.1", "localhost", "::1")
    if not url.hostname or (url.scheme != "https" and not (url.scheme == "http" and is_local)):
        raise ValueError(f"The base URL must begin with https://, because requests to {url.hostname} have the key.")
    if url.username or url.password or url.query or url.fragment:
        raise ValueError("The base URL must have a host and a path only.")
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"
