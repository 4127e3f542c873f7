"""Runs and their events in SQLite."""

import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import aiosqlite

from eloquio.store.database import give_back

RunStatus = Literal["queued", "running", "completed", "cancelled", "interrupted", "failed"]

# Some megabytes for usual conversations: more than a person looks back at, and soon searched.
KEPT_RUNS = 500

# Without the request, whose pictures make it long: only who continues a run needs it.
_COLUMNS = "id, model, status, created, ended, finish_reason, usage, error"
# Each write can be repeated: one that was cut off, or failed in a part, is tried again as a whole.
_INSERT = f"""
    INSERT INTO runs ({_COLUMNS}, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, ended = excluded.ended,
        finish_reason = excluded.finish_reason, usage = excluded.usage, error = excluded.error
"""
_UPDATE = """
    UPDATE runs SET status = ?, ended = ?, finish_reason = ?, usage = ?, error = ? WHERE id = ?
"""
_READ = f"SELECT {_COLUMNS} FROM runs WHERE id = ?"
_REQUEST = "SELECT request FROM runs WHERE id = ?"
_NEWEST = f"SELECT {_COLUMNS} FROM runs ORDER BY number DESC LIMIT ?"
_NEWEST_BEFORE = f"""
    SELECT {_COLUMNS} FROM runs WHERE number < (SELECT number FROM runs WHERE id = ?)
    ORDER BY number DESC LIMIT ?
"""
_DELETE = "DELETE FROM runs WHERE id = ?"
_DELETE_OLD = """
    DELETE FROM runs WHERE number IN (
        SELECT number FROM runs WHERE ended IS NOT NULL ORDER BY number DESC LIMIT -1 OFFSET ?
    )
"""
_INTERRUPT = """
    UPDATE runs SET status = 'interrupted', ended = ?, error = ?
    WHERE status IN ('queued', 'running')
"""
# One statement for all, so that a batch is kept as a whole or not at all.
_APPEND = "INSERT OR REPLACE INTO run_events (run_id, first_number, last_number, events) VALUES "
_EVENTS_AFTER = """
    SELECT first_number, last_number, events FROM run_events
    WHERE run_id = ? AND last_number > ? ORDER BY first_number
"""
_LAST_NUMBER = "SELECT max(last_number) FROM run_events WHERE run_id = ?"
_HOLDER_OF = """
    SELECT count(*) FROM run_events WHERE run_id = ? AND first_number <= ? AND last_number >= ?
"""


@dataclass(frozen=True)
class Run:
    """`created` and `ended` are seconds since 1970; `error` is the inside of an error's body."""

    id: str
    model: str
    status: RunStatus
    created: float
    ended: float | None = None
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


@dataclass(frozen=True)
class Batch:
    """Consecutive events of one run; the first of all has the number 1."""

    run_id: str
    first_number: int
    events: Sequence[bytes]

    @property
    def last_number(self) -> int:
        return self.first_number + len(self.events) - 1


class RunLog:
    def __init__(self, database: aiosqlite.Connection) -> None:
        self._database = database

    async def insert(self, run: Run, request: bytes) -> None:
        """`request` is the chat body as the engine is sent it."""
        values = (run.id, run.model, run.status, run.created, *_end_of(run), request)
        await self._database.execute(_INSERT, values)

    async def update(self, run: Run) -> None:
        await self._database.execute(_UPDATE, (run.status, *_end_of(run), run.id))

    async def append(self, batches: Sequence[Batch]) -> None:
        if not batches:
            return
        values = [
            value
            for batch in batches
            for value in (
                batch.run_id,
                batch.first_number,
                batch.last_number,
                b"\n".join(batch.events),
            )
        ]
        rows = ", ".join(["(?, ?, ?, ?)"] * len(batches))
        await self._database.execute(_APPEND + rows, values)

    async def read(self, run_id: str) -> Run | None:
        async with self._database.execute(_READ, (run_id,)) as cursor:
            row = await cursor.fetchone()
        return None if row is None else _run(row)

    async def request(self, run_id: str) -> bytes:
        """What was asked; nothing where there is no such run."""
        async with self._database.execute(_REQUEST, (run_id,)) as cursor:
            row = await cursor.fetchone()
        return b"" if row is None else row[0]

    async def newest(self, limit: int, before: str | None = None) -> list[Run]:
        """The newest first; `before` is the id of the last one seen."""
        statement, values = (
            (_NEWEST, (limit,)) if before is None else (_NEWEST_BEFORE, (before, limit))
        )
        async with self._database.execute(statement, values) as cursor:
            return [_run(row) async for row in cursor]

    async def batches_after(self, run_id: str, number: int) -> AsyncIterator[Batch]:
        """What follows the event of that number, batch by batch as it was kept."""
        while True:
            async with self._database.execute(_EVENTS_AFTER, (run_id, number)) as cursor:
                row = await cursor.fetchone()
            if row is None:
                return
            first, number, events = row
            yield Batch(run_id, first, events.split(b"\n"))

    async def events(self, run_id: str) -> list[bytes]:
        async with self._database.execute(_EVENTS_AFTER, (run_id, 0)) as cursor:
            return [event async for row in cursor for event in row[2].split(b"\n")]

    async def last_number(self, run_id: str) -> int:
        """0 where there is no event yet."""
        async with self._database.execute(_LAST_NUMBER, (run_id,)) as cursor:
            row = await cursor.fetchone()
        return (row[0] if row else None) or 0

    async def has_number(self, run_id: str, number: int) -> bool:
        async with self._database.execute(_HOLDER_OF, (run_id, number, number)) as cursor:
            row = await cursor.fetchone()
        return bool(row and row[0])

    async def delete(self, run_id: str) -> None:
        await self._database.execute(_DELETE, (run_id,))

    async def delete_old(self, kept: int = KEPT_RUNS) -> None:
        """Leaves the newest of those that have ended."""
        await self._database.execute(_DELETE_OLD, (kept,))

    async def give_back(self) -> None:
        """The disk gets the place of what was deleted."""
        await give_back(self._database)

    async def interrupt_all(self, error: dict[str, Any]) -> None:
        """Marks what was under way when the backend before this one ended."""
        await self._database.execute(_INTERRUPT, (time.time(), json.dumps(error)))


def _end_of(run: Run) -> tuple[float | None, str | None, str | None, str | None]:
    return (
        run.ended,
        run.finish_reason,
        None if run.usage is None else json.dumps(run.usage),
        None if run.error is None else json.dumps(run.error),
    )


def _run(row: aiosqlite.Row | tuple[Any, ...]) -> Run:
    run_id, model, status, created, ended, finish_reason, usage, error = row
    return Run(
        id=run_id,
        model=model,
        status=status,
        created=created,
        ended=ended,
        finish_reason=finish_reason,
        usage=None if usage is None else json.loads(usage),
        error=None if error is None else json.loads(error),
    )
