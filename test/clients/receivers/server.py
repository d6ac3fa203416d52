"""A receiver on the Python kit, as a process, like server.ts: DATABASE is a file of SQLite."""

import json
import os
import random
import sqlite3
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../apps/clients/receiver-python"))
from org_api_receiver import InvalidDelivery, receive, sqlite  # noqa: E402

FAILING = float(os.environ.get("FAILING", "0"))
local = threading.local()


def connect():
    if not hasattr(local, "connection"):
        local.connection = sqlite3.connect(os.environ["DATABASE"], isolation_level=None, timeout=20)
    return local.connection


def apply(event, tx):
    tx.execute("insert into effect (event_id, is_late) values (?, 0)", (event["id"],))
    status = "ended" if event["type"].endswith(".ended") else "active"
    tx.execute(
        "insert into state (subject, status) values (?, ?)"
        " on conflict (subject) do update set status = excluded.status",
        (event["data"].get("seatId") or event["data"].get("grantId", ""), status),
    )
    if random.random() < FAILING:
        raise RuntimeError("the effect failed")


def late(event, tx):
    tx.execute("insert into effect (event_id, is_late) values (?, 1)", (event["id"],))


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            receive(
                self.headers,
                body,
                secrets=lambda endpoint: [os.environ["SECRET"]],
                transaction=lambda: sqlite(connect()),
                apply=apply,
                late=late,
            )
            self.answer(204, b"")
        except InvalidDelivery:
            self.answer(400, b"")
        except Exception:
            self.answer(503, b"")

    def do_GET(self):
        rows = connect().execute("select event_id, count(*) from effect where is_late = 0 group by event_id")
        events = dict(rows.fetchall())
        states = dict(connect().execute("select subject, status from state").fetchall())
        self.answer(200, json.dumps({"events": events, "grants": states, "seats": states}).encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
server.serve_forever()
