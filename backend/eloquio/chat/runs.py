"""Runs: answers that belong to the server. Who asked may leave; the answer is kept."""

import asyncio
import json
import sqlite3
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

import structlog

from eloquio.chat.continuing import continued
from eloquio.chat.fold import Message, fold, only_names_the_role
from eloquio.chat.generation import generate
from eloquio.chat.live_run import LiveRun
from eloquio.chat.request import for_engine
from eloquio.chat.run_log import Run, RunLog, RunStatus
from eloquio.chat.run_writer import RunWriter
from eloquio.chat.schema import ChatRequest
from eloquio.engines.pool import Pool
from eloquio.errors import (
    EloquioError,
    InvalidRequest,
    RunCannotContinue,
    RunEventsLost,
    RunInterrupted,
    RunNotFound,
    ShuttingDown,
    Unexpected,
)

# Between what was generated before an interruption and after it: more than any run has events, so
# that a reader who saw some that were lost is told from one who saw all.
_NUMBERS_LEFT_OUT = 1_000_000
# A reader is told the end once it is kept, but not later than this.
_KEEPING_SECONDS = 1.0
_CLOSING_SECONDS = 2.0
# Of those that ended and can't be written, for want of a disk: their events stay in memory.
_UNKEPT_RUNS = 20

logger = structlog.get_logger(__name__)


class Runs:
    """Every live run has a task here, which ends with the run or at the shutdown."""

    def __init__(self, log: RunLog, pool: Pool) -> None:
        self._log = log
        self._pool = pool
        self._writer = RunWriter(log)
        self._live: dict[str, LiveRun] = {}
        # A run begins to be continued, or to be deleted, once at a time.
        self._changing = asyncio.Lock()
        self._is_closing = False

    @classmethod
    async def open(cls, log: RunLog, pool: Pool) -> "Runs":
        """What a backend before this one left under way is marked as interrupted."""
        await log.interrupt_all(_inside(RunInterrupted("Eloquio ended during the answer.")))
        return cls(log, pool)

    # What callers ask for --------------------------------------------------------------------

    async def create(self, request: ChatRequest, body: bytes) -> LiveRun:
        """A run under way. Raises what is wrong with the request, and for an unknown model."""
        self._refuse_when_closing()
        asked = _streamed(for_engine(request, body))
        run = Run(
            id=f"run-{uuid.uuid4().hex}",
            model=await self._pool.name_of(request.model),
            status="queued",
            created=time.time(),
            request=asked,
        )
        live = LiveRun(run)
        self._begin(live, asked)
        await self._writer.flush()
        return live

    async def find(self, run_id: str) -> LiveRun | Run:
        """As it is in memory, or as it was kept; RunNotFound."""
        if (live := self._live.get(run_id)) is not None:
            if not (live.is_over and live.is_kept):
                return live
            # It was kept late, when the disk was there again.
            del self._live[run_id]
        if (run := await self._log.read(run_id)) is not None:
            return run
        raise RunNotFound("There is no run of that id.")

    async def newest(self, limit: int, before: str | None) -> list[Run]:
        """The newest first, those that could not be kept left out."""
        kept = await self._log.newest(limit, before)
        return [self._live[run.id].run if run.id in self._live else run for run in kept]

    async def message(self, found: LiveRun | Run) -> Message:
        """The message so far."""
        events = await self._all_events(found)
        # In a thread, as a long answer has thousands of them.
        return await asyncio.to_thread(fold, events)

    async def last_number(self, found: LiveRun | Run) -> int:
        """The number of the last event; 0 before the first."""
        if isinstance(found, LiveRun) and (found.events or found.first_number == 1):
            return found.last_number
        return await self._log.last_number(_id(found))

    async def kept_events(
        self, found: LiveRun | Run, after: int
    ) -> AsyncIterator[tuple[int, list[bytes]]]:
        """What was kept from before `found` was in memory: the first number, and the events."""
        end = found.first_number if isinstance(found, LiveRun) else None
        if end == 1:
            return
        async for batch in self._log.batches_after(_id(found), after):
            if end is not None and batch.first_number >= end:
                return
            seen = max(0, after + 1 - batch.first_number)
            yield batch.first_number + seen, list(batch.events[seen:])

    async def refuse_lost(self, found: LiveRun | Run, number: int) -> None:
        """RunEventsLost for a reader whose last event isn't one of this run's."""
        if number == 0:
            return
        if isinstance(found, LiveRun) and found.first_number <= number <= found.last_number:
            return
        if not await self._log.has_number(_id(found), number):
            raise RunEventsLost(f"The run has no event {number}.")

    async def cancel(self, run_id: str) -> LiveRun | Run:
        """The run as it ended; one that had ended stays as it was."""
        found = await self.find(run_id)
        if isinstance(found, LiveRun):
            found.stop("cancelled")
            await _ended(found)
        return found

    async def continue_(self, run_id: str) -> LiveRun:
        """The same run, under way again; RunCannotContinue."""
        async with self._changing:
            self._refuse_when_closing()
            found = await self.find(run_id)
            if isinstance(found, LiveRun):
                is_over = found.is_over
                raise RunCannotContinue(
                    "The run couldn't be kept." if is_over else "The run is still under way."
                )
            body = continued(found.request, await self.message(found))
            first = await self._log.last_number(run_id) + 1
            if found.status == "interrupted" and first > 1:
                first += _NUMBERS_LEFT_OUT
            run = replace(
                found, status="queued", ended=None, finish_reason=None, usage=None, error=None
            )
            live = LiveRun(run, first, is_continued=True)
            self._begin(live, body)
            await self._writer.flush()
            return live

    async def delete(self, run_id: str) -> None:
        """Cancels it first. RunNotFound."""
        async with self._changing:
            await self.cancel(run_id)
            self._live.pop(run_id, None)
            await self._writer.delete(run_id)

    async def close(self) -> None:
        """Interrupts what is under way, and keeps all of it; final."""
        if self._is_closing:
            return
        self._is_closing = True
        under_way = [live for live in self._live.values() if not live.is_over]
        for live in under_way:
            live.stop("interrupted")
        if tasks := [live.task for live in under_way if live.task is not None]:
            await asyncio.wait(tasks, timeout=_CLOSING_SECONDS)
        await self._writer.close()

    # A run's own task ------------------------------------------------------------------------

    def _begin(self, live: LiveRun, body: bytes) -> None:
        self._live[live.run.id] = live
        self._writer.note(live)
        live.task = asyncio.create_task(self._carry_out(live, body), name=live.run.id)

    async def _carry_out(self, live: LiveRun, body: bytes) -> None:
        live.has_begun = True
        error: EloquioError | None = None
        status: RunStatus = "completed"
        try:
            if live.stopped_as is None:
                await self._generate(live, body)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
        except EloquioError as failure:
            status, error = "failed", failure
        except Exception:
            logger.exception("run_failed", run=live.run.id)
            status, error = "failed", Unexpected("Something went wrong in Eloquio itself.")
        live.is_ending = True
        if live.stopped_as is not None:
            status, error = live.stopped_as, None
            if status == "interrupted":
                error = RunInterrupted("Eloquio was shut down during the answer.")
        try:
            await self._end(live, status, error)
        except Exception:
            logger.exception("run_end_failed", run=live.run.id)
        finally:
            live.close()

    async def _generate(self, live: LiveRun, body: bytes) -> None:
        def begin() -> None:
            live.begin()
            self._writer.note(live)

        async with aclosing(generate(self._pool, live.run.model, body, begin)) as generation:
            async for events in generation:
                if live.first_number > 1 and not live.events and only_names_the_role(events[0]):
                    # A message has one beginning, though it be continued.
                    del events[0]
                live.add(events)
                self._writer.note(live)

    async def _end(self, live: LiveRun, status: RunStatus, error: EloquioError | None) -> None:
        message = await asyncio.to_thread(fold, list(live.events))
        live.run = replace(
            live.run,
            status=status,
            ended=time.time(),
            finish_reason=message.finish_reason,
            usage=message.usage,
            error=None if error is None else _inside(error),
        )
        logger.info("run_ended", run=live.run.id, status=status, events=len(live.events))
        self._writer.note(live)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._writer.flush()), _KEEPING_SECONDS)
        live.close()
        if live.is_kept:
            self._live.pop(live.run.id, None)
            with suppress(sqlite3.Error):
                await self._log.delete_old()
        else:
            self._forget_unkept()

    def _forget_unkept(self) -> None:
        over = [live for live in self._live.values() if live.is_over]
        for live in over[:-_UNKEPT_RUNS]:
            del self._live[live.run.id]

    async def _all_events(self, found: LiveRun | Run) -> list[bytes]:
        if not isinstance(found, LiveRun):
            return await self._log.events(found.id)
        kept = [event async for _, events in self.kept_events(found, 0) for event in events]
        return kept + found.events

    def _refuse_when_closing(self) -> None:
        if self._is_closing:
            raise ShuttingDown("Eloquio is shutting down.")


async def _ended(live: LiveRun) -> None:
    if live.task is not None and not live.is_over:
        await asyncio.wait([live.task])


def _id(found: LiveRun | Run) -> str:
    return found.run.id if isinstance(found, LiveRun) else found.id


def _inside(error: EloquioError) -> dict[str, Any]:
    inside: dict[str, Any] = error.body()["error"]
    return inside


def _streamed(body: bytes) -> bytes:
    """A run's answer always comes as a stream, with its usage at the end."""
    fields: dict[str, Any] = json.loads(body)
    if fields.get("n") not in (None, 1):
        raise InvalidRequest("A run has one answer: n can only be 1.", param="n")
    options = fields.get("stream_options") or {}
    if not isinstance(options, dict):
        raise InvalidRequest("stream_options has to be an object.", param="stream_options")
    fields |= {"stream": True, "stream_options": {**options, "include_usage": True}}
    return json.dumps(fields).encode()
