"""What both clients share: settings, retries, waits and the cache, without input or output."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Generic, NamedTuple, Optional, TypeVar, Union
from urllib.parse import quote

from ._generated import VERSION
from ._settings import Key, read_base_url, read_key

T = TypeVar("T")
_INVALID = object()
_REDIRECTS = (301, 302, 303, 307, 308)


class RateLimit(NamedTuple):
    """Requests that the key has left, and the seconds until one more becomes available."""

    remaining: int
    seconds: int


@dataclass(frozen=True)
class ApiResponse(Generic[T]):
    """What a read returns."""

    data: T
    #: Whether the server answered 304: ``data`` is the cached body, or None for a tag of your own.
    is_unchanged: bool
    #: To send as ``if_none_match``. Empty only behind a proxy that removes it.
    etag: str
    #: Quote it to the operator of the API: the organization's audit log names it too.
    request_id: Optional[str]
    rate_limit: Optional[RateLimit]
    #: When the key expires (RFC 3339); None if it does not.
    key_expires: Optional[str]


class OrgApiError(Exception):
    """The one error of the client. Decide by ``code``; the message is for people and has no data.

    ``code`` is the server's ``error``, or why it gave none: ``timeout`` (no complete response in time),
    ``connection``, ``redirect`` (none is followed, because the request has the key), ``invalid_response`` (a 200
    that is not JSON) or ``http_STATUS`` (an error that is not the API's, such as a proxy's page).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: Optional[int] = None,
        request_id: Optional[str] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.code, self.status, self.request_id, self.retry_after = code, status, request_id, retry_after


class Request(NamedTuple):
    url: str
    headers: dict[str, str]  # without the key
    key: Key
    timeout: float


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]  # by names in lower case
    body: bytes

    def __repr__(self) -> str:  # for tools that report the local variables of an error
        return f"<Response {self.status}>"


class Core:
    """A client with one key.

    ``key`` and ``base_url`` come from ORG_API_KEY and ORG_API_BASE_URL; without the latter, the prefix of the key
    names the server. ``timeout`` bounds one attempt in seconds, from the request to the last byte. ``max_retries``:
    how often a call that failed is sent again; a 429 that says how long to wait is no failure. ``max_wait`` bounds
    the waits of a call in all, in seconds; a call that must wait longer fails at once. ``cache`` keeps bodies for
    304: a dict will do. ``clock`` has ``monotonic`` and ``sleep``, for tests. Raises ValueError.
    """

    _exchange: Callable[[Request], Awaitable[Union[Response, OrgApiError]]]
    _wait: Callable[[float], Awaitable[None]]

    def __init__(
        self,
        key: Optional[str] = None,
        *,
        base_url: Optional[str] = None,
        timeout: float = 30,
        max_retries: int = 2,
        max_wait: float = 90,
        cache: Optional[MutableMapping[str, tuple[str, bytes]]] = None,
        clock: Any = None,
    ) -> None:
        self._key = read_key(key)
        self._base_url = read_base_url(self._key, base_url)
        self._timeout, self._max_retries, self._max_wait, self._cache = timeout, max_retries, max_wait, cache
        self._clock = clock or time
        self._free_at = 0.0  # when the key has a request left again, by RateLimit of the last response without any

    async def _call(self, path: str, organization_id: str, if_none_match: Optional[str]) -> ApiResponse[Any]:
        path = path.replace("{orgId}", quote(organization_id, safe=""))
        cached = self._cache.get(path) if self._cache is not None and not if_none_match else None
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "org-api-python/" + VERSION}
        if if_none_match or cached:
            headers["If-None-Match"] = if_none_match or (cached[0] if cached else "")
        failures, left = 0, self._max_wait
        while True:
            until_free = self._free_at - self._clock.monotonic()
            if 0 < until_free <= left:  # for a longer wait than is left, the server's 429 says so at once
                left -= until_free
                await self._wait(until_free)
            got = await self._exchange(Request(self._base_url + path, headers, self._key, self._timeout))
            if isinstance(got, Response):
                rate_limit = _read_rate_limit(got)
                if rate_limit and rate_limit.remaining == 0:
                    self._free_at = self._clock.monotonic() + rate_limit.seconds
                if got.status == 200 or (got.status == 304 and "If-None-Match" in headers):
                    return self._accept(path, got, cached, rate_limit)
                got = _describe_error(got)
            if got.status != 429 or got.retry_after is None:
                failures += 1
            wait = _choose_wait(got, failures, left)
            if failures > self._max_retries or wait is None:
                raise got
            left -= wait
            await self._wait(wait)

    def _accept(
        self, path: str, got: Response, cached: Optional[tuple[str, bytes]], rate_limit: Optional[RateLimit]
    ) -> ApiResponse[Any]:
        is_unchanged, etag, request_id = got.status == 304, got.headers.get("etag", ""), got.headers.get("request-id")
        data = _parse(got.body if not is_unchanged else cached[1] if cached else b"null")
        if data is _INVALID:
            message = "200 with a body that is not JSON"
            raise OrgApiError("invalid_response", message, status=got.status, request_id=request_id)
        if not is_unchanged and etag and self._cache is not None:
            self._cache[path] = (etag, got.body)
        return ApiResponse(data, is_unchanged, etag, request_id, rate_limit, got.headers.get("key-expires"))


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:  # it quotes the body, so it is no context of another error
        return _INVALID


def _read_rate_limit(response: Response) -> Optional[RateLimit]:
    limit = re.search(r";r=(\d+);t=(\d+)", response.headers.get("ratelimit", ""))
    return RateLimit(int(limit[1]), int(limit[2])) if limit else None


def _choose_wait(error: OrgApiError, failures: int, left: float) -> Optional[float]:
    """Returns the seconds before the next attempt, or None: there is none.

    Random parts keep callers apart that wait for the same moment, within the bound.
    """
    if error.status is not None and error.status not in (408, 429) and error.status < 500:
        return None
    asked = 0.5 * 2 ** (failures - 1) if error.retry_after is None else max(1.0, error.retry_after)
    return None if asked > left else min(asked + random.uniform(0, 0.5), left)


def _describe_error(response: Response) -> OrgApiError:
    try:  # a body that is not the API's, such as a proxy's page, has no fields
        parsed = json.loads(response.body)
    except ValueError:
        parsed = None
    fields = parsed.items() if isinstance(parsed, dict) else ()
    texts = {name: value for name, value in fields if isinstance(value, str)}
    status = response.status
    code = texts.get("error") or ("redirect" if status in _REDIRECTS else f"http_{status}")
    request_id = texts.get("requestId") or response.headers.get("request-id")
    message = f"{status} {code}: {texts.get('message', 'no message')}"
    retry_after = _parse_retry_after(response.headers.get("retry-after"))
    suffix = f" (request {request_id})" if request_id else ""
    return OrgApiError(code, message + suffix, status=status, request_id=request_id, retry_after=retry_after)


def _parse_retry_after(value: Optional[str]) -> Optional[float]:
    """Returns the seconds of Retry-After, which a proxy may send as a date; None for neither."""
    if value is None:
        return None
    try:
        return float(value) if value.isdigit() else max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
