"""Decides which events to apply: none twice, and of one seat or grant none that is earlier than the last one."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple


class Position(NamedTuple):
    created_at: str
    endpoint: str
    sequence: int
    id: str

    def is_later(self, last: Position) -> bool:
        """Each endpoint counts for itself, so sequences of two say nothing about each other: then the ids decide."""
        if self.created_at != last.created_at:
            return self.created_at > last.created_at
        if self.endpoint == last.endpoint and self.sequence != last.sequence:
            return self.sequence > last.sequence
        return self.id > last.id


class Events:
    """In memory for the example.

    In production, use two tables, one with the event's id as its key and one with the subject's, and write them in the
    transaction that does the work.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._latest: dict[str, Position] = {}
        self._lock = Lock()

    def is_due(self, event: dict, endpoint: str, sequence: int) -> bool:
        """Whether to apply an event."""
        # A test event is accepted like any other and never acted on: the ids in its data name nothing.
        if event.get("test") is True:
            return False
        with self._lock:
            if event["id"] in self._seen:
                return False
            self._seen.add(event["id"])
            subject = find_subject(event["data"])
            position = Position(event["createdAt"], endpoint, sequence, event["id"])
            last = self._latest.get(subject) if subject else None
            if last and not position.is_later(last):
                return False
            if subject:
                self._latest[subject] = position
            return True


def find_subject(data: dict) -> str | None:
    """What an event is about: a seat, or else a grant. A grant has several seats, one after another."""
    if data.get("seatId"):
        return f"seat {data['seatId']}"
    return f"grant {data['grantId']}" if data.get("grantId") else None
