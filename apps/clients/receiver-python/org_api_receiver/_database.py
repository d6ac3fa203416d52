from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Iterator, Protocol, Sequence

SCHEMA = (
    """create table if not exists org_api_event (
    id varchar(64) primary key, received_at bigint not null)""",
    """create table if not exists org_api_sequence (
    endpoint varchar(64) not null, sequence bigint not null, received_at bigint not null,
    primary key (endpoint, sequence))""",
    """create table if not exists org_api_subject (
    id varchar(128) primary key, happened_at bigint not null, endpoint varchar(64) not null, sequence bigint not null,
    event_id varchar(64) not null, received_at bigint not null)""",
)
"""The three tables, for your migrations. PostgreSQL, MySQL, MariaDB and SQLite take them as they are."""

GAPS = """
  select endpoint, sequence + 1 as first, following - 1 as last from (
    select endpoint, sequence, lead(sequence) over (partition by endpoint order by sequence) as following
    from org_api_sequence) numbers
  where following > sequence + 1 order by endpoint, sequence"""
"""Lists the numbers of webhook-sequence that never came, by webhook. One that is on its way is listed too."""

_RETENTION_MS = 90 * 24 * 60 * 60 * 1_000


class Transaction(Protocol):
    """A transaction of your database: it ends with the `with` block, and is undone when that raises."""

    dialect: str  # "mysql", or "" for databases with `on conflict do nothing`
    connection: Any  # for your own statements

    def execute(self, sql: str, values: Sequence[Any]) -> int:
        """Runs a statement with `?` for each value, and returns how many rows it inserted, changed or deleted."""


class _Transaction:
    def __init__(self, connection: Any, mark: str, dialect: str) -> None:
        self.connection, self.dialect = connection, dialect
        self._mark = mark

    def execute(self, sql: str, values: Sequence[Any]) -> int:
        cursor = self.connection.cursor()
        try:
            cursor.execute(sql.replace("?", self._mark), tuple(values))
            return int(cursor.rowcount)
        finally:
            cursor.close()


@contextmanager
def sqlite(connect: Callable[[], Any]) -> Iterator[Transaction]:
    """The port for sqlite3: `sqlite(lambda: sqlite3.connect(file))`. Each use connects and closes.

    So threads may share it: a connection of sqlite3 belongs to the thread that opened it, and has one transaction.
    """
    connection = connect()
    try:
        connection.isolation_level = None  # or the module would begin transactions of its own
        connection.execute("begin immediate")
        yield _Transaction(connection, "?", "")
        connection.execute("commit")
    finally:
        connection.close()  # undoes what was not committed


@contextmanager
def dbapi(connect: Callable[[], Any], dialect: str = "") -> Iterator[Transaction]:
    """The port for psycopg, and with dialect "mysql" for PyMySQL and mysqlclient: each use connects and closes.

    With a pool, `connect` gets a connection of it, whose `close` returns it.
    """
    connection = connect()
    try:
        yield _Transaction(connection, "%s", dialect)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    finally:
        connection.close()


def forget(transaction: Callable[[], ContextManager[Transaction]], now: Callable[[], float] = time.time) -> None:
    """Forgets what the service cannot send again: what is older than 90 days. Run it once a day.

    Of each webhook the last number of that age stays, so that its removal shows no gap.
    """
    before = int(now() * 1_000) - _RETENTION_MS
    with transaction() as tx:
        tx.execute("delete from org_api_event where received_at < ?", (before,))
        tx.execute("delete from org_api_subject where received_at < ?", (before,))
        tx.execute(
            """delete from org_api_sequence where exists (
                 select 1 from (
                   select endpoint, max(sequence) as newest from org_api_sequence
                   where received_at < ? group by endpoint
                 ) old where old.endpoint = org_api_sequence.endpoint and old.newest > org_api_sequence.sequence)""",
            (before,),
        )


def insert_once(tx: Transaction, table: str, values: Sequence[Any]) -> bool:
    """Inserts a row unless its key is there. Returns whether it did."""
    marks = ", ".join("?" for _ in values)
    if tx.dialect == "mysql":
        return tx.execute(f"insert ignore into {table} values ({marks})", values) == 1
    return tx.execute(f"insert into {table} values ({marks}) on conflict do nothing", values) == 1
