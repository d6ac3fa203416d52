"""Gives every request of schemathesis a key of its organization, in turn, because a key allows 120 requests a minute.

ORG_API_KEYS names a JSON file: organization id -> list of keys. A request for any other organization gets any key.
"""

import itertools
import json
import os
import threading

import schemathesis

with open(os.environ["ORG_API_KEYS"], encoding="utf-8") as file:
    keys = json.load(file)

turns = {organization: itertools.cycle(values) for organization, values in keys.items()}
strangers = itertools.cycle([key for values in zip(*keys.values()) for key in values])
lock = threading.Lock()


@schemathesis.auth(refresh_interval=None)
class KeysInTurn:
    def get(self, case, context):
        organization = (case.path_parameters or {}).get("orgId")
        with lock:
            return next(turns.get(organization, strangers))

    def set(self, case, data, context):
        case.headers = case.headers or {}
        case.headers["Authorization"] = f"Bearer {data}"
