from __future__ import annotations

import gzip
import io
import socket
import time
import zlib
from base64 import b64encode
from contextlib import closing
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Optional, Union
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from ._core import OrgApiError, Request, Response
from ._generated import SERVERS


class Exchange:
    """A request that another thread can end."""

    def __init__(self) -> None:
        self._socket: Optional[socket.socket] = None
        self._has_ended = False

    def begin(self, sock: socket.socket) -> None:
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
    def __init__(self, sock: socket.socket, *args: Any, deadline: float, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_BoundedReader(self.fp.detach(), sock, deadline))


def send(request: Request, exchange: Optional[Exchange] = None) -> Union[Response, OrgApiError]:
    """Returns the response, or the error that kept it away. No error has the request as context."""
    try:
        return _send(request, exchange or Exchange())
    except (OSError, HTTPException, EOFError, zlib.error) as error:
        is_timeout = isinstance(error, (TimeoutError, socket.timeout)) or "timed out" in str(error)
        code, words = ("timeout", "in time") if is_timeout else ("connection", f"({type(error).__name__})")
        host, hint = urlsplit(request.url).netloc, ""
        if f"https://{host}" in SERVERS.values():
            hint = " The prefix of the key names this server; for another, set ORG_API_BASE_URL."
        return OrgApiError(code, f"No response of {host} {words}.{hint}")


def _send(request: Request, exchange: Exchange) -> Response:
    url = urlsplit(request.url)
    response_class: Any = partial(_BoundedResponse, deadline=time.monotonic() + request.timeout)
    with closing(_create_connection(url, request.timeout)) as connection:
        connection.response_class = response_class
        connection.connect()
        exchange.begin(connection.sock)
        connection.request("GET", url.path, headers={**request.headers, "Authorization": request.key.header})
        with connection.getresponse() as received:
            body = received.read()
            headers = {name.lower(): value for name, value in received.headers.items()}
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return Response(received.status, headers, body)


def _create_connection(url: SplitResult, timeout: float) -> HTTPConnection:
    """The system names proxies (HTTPS_PROXY) and certificates (SSL_CERT_FILE).

    A server on this machine is reached without a proxy, which would read the key.
    """
    host, port = url.hostname or "", url.port
    if url.scheme == "http":
        return HTTPConnection(host, port, timeout=timeout)
    proxy = "" if proxy_bypass(url.netloc) else getproxies().get("https", "")
    if not proxy:
        return HTTPSConnection(host, port, timeout=timeout)
    to = urlsplit(proxy if "://" in proxy else "http://" + proxy)
    connection = HTTPSConnection(to.hostname or "", to.port, timeout=timeout)
    login = f"{unquote(to.username or '')}:{unquote(to.password or '')}".encode()
    authorization = {"Proxy-Authorization": "Basic " + b64encode(login).decode()} if to.username else {}
    connection.set_tunnel(host, port or 443, authorization)
    return connection
