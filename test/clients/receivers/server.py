"""A receiver on the Python kit, as a process, like server.ts, with psycopg or PyMySQL where they are installed."""

import json
import os
import random
import sqlite3
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../apps/clients/receiver-python"))
from org_api_receiver import GAPS, InvalidDelivery, dbapi, forget, receive, sqlite  # noqa: E402

FAILING = float(os.environ.get("FAILING", "0"))
DATABASE = os.environ["DATABASE"]
IS_MYSQL = DATABASE.startswith("mysql")
UPSERT = (
    "on duplicate key update status = values(status)"
    if IS_MYSQL
    else "on conflict (subject) do update set status = excluded.status"
)


def connect():
    if IS_MYSQL:
        import pymysql

        url = urlsplit(DATABASE)
        return pymysql.connect(host=url.hostname, port=url.port, user=url.username, database=url.path[1:])
    if DATABASE.startswith("postgres"):
        import psycopg

        return psycopg.connect(DATABASE)
    return sqlite3.connect(DATABASE, timeout=20)


def transaction():
    if "://" not in DATABASE:
        return sqlite(connect)
    return dbapi(connect, "mysql") if IS_MYSQL else dbapi(connect)


def query(sql):
    with transaction() as tx:
        cursor = tx.connection.cursor()
        cursor.execute(sql)
        return cursor.fetchall()


def apply(event, tx):
    tx.execute("insert into effect (event_id, is_late) values (?, 0)", (event["id"],))
    status = "ended" if event["type"].endswith(".ended") else "active"
    tx.execute(
        f"insert into state (subject, status) values (?, ?) {UPSERT}",
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
                transaction=transaction,
                apply=apply,
                now=self.now,
                late=late,
            )
            self.answer(204, b"")
        except InvalidDelivery:
            self.answer(400, b"")
        except Exception:
            self.answer(503, b"")

    def now(self):
        return int(self.headers.get("test-now", time.time() * 1_000)) / 1_000

    def do_DELETE(self):
        forget(transaction, self.now)
        self.answer(204, b"")

    def do_GET(self):
        if self.path == "/gaps":
            rows = [dict(zip(("endpoint", "first", "last"), row)) for row in query(GAPS)]
            return self.answer(200, json.dumps(rows).encode())
        events = dict(query("select event_id, count(*) from effect where is_late = 0 group by event_id"))
        states = dict(query("select subject, status from state"))
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
