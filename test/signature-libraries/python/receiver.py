"""A webhook receiver: WEBHOOK_SECRET=whsec_… PORT=3000 python receiver.py"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from events import Events
from webhook_secrets import read_secrets
from verify import verify_with_standardwebhooks

BODY_LIMIT_BYTES = 256 * 1024

try:
    secrets_of = read_secrets(os.environ.get("WEBHOOK_SECRET", ""))
except ValueError as problem:
    sys.exit(str(problem))
events = Events()


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # seconds without a byte before a connection is closed

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if size > BODY_LIMIT_BYTES:
            return self.answer(413, "too large\n")
        # The bytes exactly as they came: the signature covers them and not the JSON.
        body = self.rfile.read(size)
        headers = {name.lower(): value for name, value in self.headers.items()}
        endpoint = headers.get("webhook-endpoint", "")
        if not any(is_genuine(body, headers, secret) for secret in secrets_of(endpoint)):
            return self.answer(400, "the signature does not verify\n")
        event = json.loads(body)
        if events.is_due(event, endpoint, int(headers.get("webhook-sequence", "0"))):
            handle(event)
        self.answer(204)  # what is not due is answered with success too, or it would be sent again

    def answer(self, status: int, text: str = "") -> None:
        self.send_response(status)
        if text:
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass  # `handle` says what came


def is_genuine(body: bytes, headers: dict[str, str], secret: str) -> bool:
    try:
        verify_with_standardwebhooks(body, headers, secret)
        return True
    except Exception:  # the library raises several kinds, for a malformed header too
        return False


def handle(event: dict) -> None:
    """Your part, which is called once for each genuine event.

    Put slow work into a queue: the response is due within 10 seconds.
    """
    print(event["type"], event["id"], flush=True)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
