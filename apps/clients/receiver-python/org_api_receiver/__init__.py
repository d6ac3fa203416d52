"""Takes webhook deliveries of org-api: verifies, remembers, orders and applies them in one transaction."""

from ._database import GAPS, SCHEMA, Transaction, dbapi, forget, sqlite
from ._receive import Event, receive
from ._verify import InvalidDelivery, verify

__all__ = [
    "GAPS",
    "SCHEMA",
    "Event",
    "InvalidDelivery",
    "Transaction",
    "dbapi",
    "forget",
    "receive",
    "sqlite",
    "verify",
]
