from __future__ import annotations

import gzip
import io
import socket
import time
import zlib
from functools import partial
from http.client import HTTPException, HTTPResponse
from typing import Any, Optional, Union
from urllib.error import HTTPError
from urllib.request import (
    AbstractHTTPHandler,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    ProxyHandler,
    build_opener,
)
from urllib.request import Request as UrlRequest

from ._core import OrgApiError, Request, Response


class Exchange:
    """A request that another thread can end."""

    def __init__(self) -> None:
        self._socket: Optional[socket.socket] = None
        self._has_ended = False

    def begin_response(self, sock: socket.socket) -> None:
        self._socket = sock
        if self._has_ended:
            raise ConnectionAbortedError

    def end(self) -> None:
        self._has_ended = True
        if self._socket is not None:
            try:  # below TLS, whose own shutdown waits for the server
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                pass  # it is closed


class _BoundedReader(io.RawIOBase):
    """Gives each read of a socket what is left of the time. Python itself bounds each read alone."""

    def __init__(self, raw: Any, sock: socket.socket, deadline: float) -> None:
        self._raw, self._sock, self._deadline = raw, sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Any:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the response did not end in time")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _BoundedResponse(HTTPResponse):
    def __init__(
        self, sock: socket.socket, *args: Any, deadline: float, exchange: Exchange, **options: Any
    ) -> None:
        super().__init__(sock, *args, **options)
        exchange.begin_response(sock)
        self.fp = io.BufferedReader(_BoundedReader(self.fp.detach(), sock, deadline))


class _Outgoing(UrlRequest):
    exchange: Exchange


class _Bounded(AbstractHTTPHandler):
    def do_open(self, http_class: Any, req: Any, **arguments: Any) -> Any:
        deadline = time.monotonic() + (req.timeout or 0)

        def connect(host: str, **options: Any) -> Any:
            connection = http_class(host, **options)
            connection.response_class = partial(_BoundedResponse, deadline=deadline, exchange=req.exchange)
            return connection

        return super().do_open(connect, req, **arguments)


class _Http(_Bounded, HTTPHandler):
    pass


class _Https(_Bounded, HTTPSHandler):
    pass


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


# Proxies (HTTPS_PROXY) and certificates (SSL_CERT_FILE) are the system's. A server on this machine is reached
# without a proxy, which would read the key.
_remote = build_opener(_Https, _NoRedirect)
_local = build_opener(_Http, _NoRedirect, ProxyHandler({}))


def send(request: Request, exchange: Optional[Exchange] = None) -> Union[Response, OrgApiError]:
    """Returns the response, or the error that kept it away. No error has the request as context."""
    try:
        return _send(request, exchange or Exchange())
    except (OSError, HTTPException, EOFError, zlib.error) as error:
        reason = getattr(error, "reason", error)
        is_timeout = isinstance(reason, (TimeoutError, socket.timeout)) or "timed out" in str(reason)
        code, words = ("timeout", "in time") if is_timeout else ("connection", f"({type(reason).__name__})")
        return OrgApiError(code, f"No response of the API {words}.")


def _send(request: Request, exchange: Exchange) -> Response:
    outgoing = _Outgoing(request.url, headers={**request.headers, "Authorization": request.key.header})
    outgoing.exchange = exchange
    opener = _remote if request.url.startswith("https:") else _local
    try:
        received: Any = opener.open(outgoing, timeout=request.timeout)
    except HTTPError as other:  # any status but 2xx
        received = other
    with received:
        body = received.read()
        headers = {name.lower(): value for name, value in received.headers.items()}
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return Response(received.status if hasattr(received, "status") else received.code, headers, body)
