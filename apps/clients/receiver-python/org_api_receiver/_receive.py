from __future__ import annotations

import json
import re
import time
from datetime import datetime, timezone
from typing import Any, Callable, ContextManager, Dict, Iterable, Mapping, Optional

from ._database import Transaction, insert_once
from ._verify import InvalidDelivery, verify

Event = Dict[str, Any]
Apply = Callable[[Event, Transaction], None]

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z")


def receive(
    headers: Mapping[str, str],
    body: bytes,
    *,
    secrets: Callable[[str], Iterable[str]],
    transaction: Callable[[], ContextManager[Transaction]],
    apply: Apply,
    late: Optional[Apply] = None,
    now: Callable[[], float] = time.time,
) -> str:
    """Takes a delivery: verifies it, and in one transaction remembers, orders and applies it.

    Returns `applied`, `late` (a later event of its seat or grant was applied before), `repeat` or `test`: answer 204.
    Raises InvalidDelivery when it is not genuine: answer 400. Answer 503 to every other exception: the event returns.

    `secrets` has those of a webhook by its id, two while one is being rotated. `apply` is your effect, by the
    transaction that remembers the event: when it raises, both are undone. `late` is called instead with a late event;
    by default nothing is done. Longer work belongs into a table of jobs, to which `apply` adds one.
    """
    moment = now()
    found = {name.lower(): value for name, value in headers.items()}
    endpoint = found.get("webhook-endpoint", "")
    verify(found, body, secrets(endpoint), moment)
    event = _read_event(body)
    if event.get("test") is True:
        return "test"
    sequence, now_ms = int(found.get("webhook-sequence", "0")), int(moment * 1_000)
    with transaction() as tx:
        # Also of a repeat: another webhook counts for itself, and a number can come twice.
        if sequence > 0:
            insert_once(tx, "org_api_sequence", (endpoint, sequence, now_ms))
        if not insert_once(tx, "org_api_event", (event["id"], now_ms)):
            return "repeat"
        subject = _find_subject(event)
        if subject is not None and not _move_on(tx, subject, event, endpoint, sequence, now_ms):
            if late is not None:
                late(event, tx)
            return "late"
        apply(event, tx)
        return "applied"


def _read_event(body: bytes) -> Event:
    try:
        event: Event = json.loads(body)
        if isinstance(event["id"], str) and _TIME.fullmatch(event["createdAt"]):
            return event
    except (ValueError, TypeError, KeyError):
        pass  # said below
    raise InvalidDelivery("The body is not the JSON of an event.")


def _find_subject(event: Event) -> Optional[str]:
    """What an event is about: a seat, or else a grant. A grant has several seats, one after another."""
    data = event.get("data") or {}
    if data.get("seatId"):
        return f"seat:{data['seatId']}"
    return f"grant:{data['grantId']}" if data.get("grantId") else None


def _milliseconds(text: str) -> int:
    match = _TIME.fullmatch(text)
    assert match is not None  # _read_event has looked
    seconds = datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc).timestamp()
    return int(seconds) * 1_000 + int((match[2] or "").ljust(3, "0")[:3])


def _move_on(tx: Transaction, subject: str, event: Event, endpoint: str, sequence: int, now_ms: int) -> bool:
    """Makes an event the last one of its subject. Returns False when a later one is.

    createdAt decides, and within a millisecond the sequence. Each webhook counts for itself, so between two of them
    the ids decide. The lock of the row also orders two deliveries at once. Rows are counted by conditions only:
    MySQL's drivers differ in how they count a row that an update leaves as it is.
    """
    at, event_id = _milliseconds(event["createdAt"]), event["id"]

    def update() -> bool:
        return tx.execute(
            """update org_api_subject set happened_at = ?, endpoint = ?, sequence = ?, event_id = ?, received_at = ?
               where id = ? and (happened_at < ? or (happened_at = ? and (
                 (endpoint = ? and sequence < ?) or ((endpoint <> ? or sequence = ?) and event_id < ?))))""",
            (at, endpoint, sequence, event_id, now_ms, subject)
            + (at, at, endpoint, sequence, endpoint, sequence, event_id),
        ) > 0

    if update():
        return True
    if insert_once(tx, "org_api_subject", (subject, at, endpoint, sequence, event_id, now_ms)):
        return True
    # Another delivery inserted it in the meantime, or it was there and is later.
    return update()
