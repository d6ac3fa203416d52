"""A webhook receiver: WEBHOOK_SECRET=whsec_… PORT=3000 python receiver.py"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from verify import verify_with_standardwebhooks

BODY_LIMIT_BYTES = 256 * 1024
SECRET = os.environ.get("WEBHOOK_SECRET", "")

# In memory for the example. In production, use a table with the event's id as its key, and write it in the
# transaction that does the work.
seen: set[str] = set()
seen_lock = Lock()


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # seconds without a byte before a connection is closed

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if size > BODY_LIMIT_BYTES:
            return self.answer(413, "too large\n")
        # The bytes exactly as they came: the signature covers them and not the JSON.
        body = self.rfile.read(size)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            verify_with_standardwebhooks(body, headers, SECRET)
        except Exception:  # the library raises several kinds, for a malformed header too
            return self.answer(400, "the signature does not verify\n")
        event = json.loads(body)
        # A test event is accepted like any other and never acted on: the ids in its data name nothing.
        if event.get("test") is not True and is_new(event["id"]):
            handle(event)
        self.answer(204)  # a repeat is answered with success too, or it would be sent again

    def answer(self, status: int, text: str = "") -> None:
        self.send_response(status)
        if text:
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass  # `handle` says what came


def is_new(event_id: str) -> bool:
    with seen_lock:
        was_seen = event_id in seen
        seen.add(event_id)
    return not was_seen


def handle(event: dict) -> None:
    """Your part, which is called once for each genuine event.

    Put slow work into a queue: the response is due within 10 seconds.
    """
    print(event["type"], event["id"], flush=True)


if __name__ == "__main__":
    if not SECRET:
        sys.exit("WEBHOOK_SECRET is missing: set it to the secret shown when the webhook was created.")
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
