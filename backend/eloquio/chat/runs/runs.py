"""Runs: answers that belong to the server. Who asked may leave; the answer is kept."""

import asyncio
import sqlite3
import time
import uuid
from contextlib import ExitStack, aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog

from eloquio.answers.cancels import Cancels
from eloquio.answers.exchange import Exchange, RequestLog
from eloquio.chat.asking import Asked, asked_again, at_once
from eloquio.chat.fold import Message, fold, only_names_the_role
from eloquio.chat.generation import generate
from eloquio.chat.request import asked_of
from eloquio.chat.runs.continuing import cancel_id_of, continued
from eloquio.chat.runs.live_run import LiveRun
from eloquio.chat.runs.log import Run, RunLog, RunStatus
from eloquio.chat.runs.shelf import RunShelf
from eloquio.chat.runs.writer import RunWriter
from eloquio.chat.schema import ChatRequest
from eloquio.engines.event_blocks import data_of
from eloquio.engines.pool import Pool
from eloquio.errors import (
    EloquioError,
    InvalidRequest,
    RequestCancelled,
    RunCannotContinue,
    RunInterrupted,
    RunNotFound,
    ShuttingDown,
    Unexpected,
)
from eloquio.media.pictures import PictureMaker

# Between what was generated before an interruption and after it: more than any run has events, so
# that a reader who saw some that were lost is told from one who saw all.
_NUMBERS_LEFT_OUT = 1_000_000
# A reader is told the end once it is kept, but not later than this.
_KEEPING_SECONDS = 1.0
_CLOSING_SECONDS = 2.0

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Created:
    run: LiveRun | Run
    is_new: bool
    """Otherwise it was there already."""


class Runs:
    """Every live run has a task here, which ends with the run or at the shutdown."""

    def __init__(
        self,
        log: RunLog,
        pool: Pool,
        request_log: RequestLog,
        cancels: Cancels,
        pictures: PictureMaker | None,
    ) -> None:
        self._log = log
        self._request_log = request_log
        self._cancels = cancels
        self._pictures = pictures or PictureMaker()
        self._pool = pool
        self._writer = RunWriter(log)
        self.shelf = RunShelf(log)
        # A run begins under an id of its client's, begins to be continued, or to be deleted, once
        # at a time.
        self._changing = asyncio.Lock()
        self._is_closing = False

    @classmethod
    async def open(
        cls,
        log: RunLog,
        pool: Pool,
        request_log: RequestLog,
        cancels: Cancels,
        pictures: PictureMaker | None = None,
    ) -> "Runs":
        """What a backend before this one left under way is marked as interrupted."""
        await log.interrupt_all(_inside(RunInterrupted("Eloquio ended during the answer.")))
        return cls(log, pool, request_log, cancels, pictures)

    # What callers ask for --------------------------------------------------------------------

    async def create(self, request: ChatRequest, body: bytes, run_id: str | None = None) -> Created:
        """A run under way; or the one that has this id already, whatever was asked of it.

        Raises what is wrong with the request, and for an unknown model.
        """
        if run_id is not None and (found := await self._found(run_id)) is not None:
            return Created(found, is_new=False)
        if request.n not in (None, 1):
            raise InvalidRequest("A run has one answer: n can only be 1.", param="n")
        live: LiveRun | None = None
        preparing = asyncio.create_task(self._asked(request, body))

        def cancel() -> None:
            if live is None:
                preparing.cancel()
            else:
                live.stop("cancelled")

        with ExitStack() as until_over:
            until_over.enter_context(self._cancels.over(request.cancel_id, cancel))
            asked = await _unless_cancelled(preparing)
            live = _new_run(run_id, asked)
            async with self._changing:
                # Who asked for it at the same time may have been first.
                if run_id is not None and (found := await self._found(run_id)) is not None:
                    return Created(found, is_new=False)
                self._begin(live, asked, until_over)
        await self._writer.flush()
        return Created(live, is_new=True)

    async def cancel(self, run_id: str) -> LiveRun | Run:
        """The run as it ended; one that had ended stays as it was."""
        found = await self.shelf.find(run_id)
        if isinstance(found, LiveRun):
            found.stop("cancelled")
            await _ended(found)
        return found

    async def continue_(self, run_id: str) -> LiveRun:
        """The same run, under way again; RunCannotContinue."""
        async with self._changing:
            found = await self.shelf.find(run_id)
            if isinstance(found, LiveRun):
                is_over = found.is_over
                raise RunCannotContinue(
                    "The run couldn't be kept." if is_over else "The run is still under way."
                )
            request = await self._log.request(run_id)
            so_far = await self.shelf.message(found)
            # In a thread, as pictures make a request long.
            asked, cancel_id = await asyncio.to_thread(_again, found.model, request, so_far)
            first = await self._log.last_number(run_id) + 1
            if found.status == "interrupted" and first > 1:
                first += _NUMBERS_LEFT_OUT
            run = replace(
                found, status="queued", ended=None, finish_reason=None, usage=None, error=None
            )
            live = LiveRun(run, request, first, is_continued=True)
            with ExitStack() as until_over:
                cancel = partial(live.stop, "cancelled")
                until_over.enter_context(self._cancels.over(cancel_id, cancel))
                self._begin(live, asked, until_over)
            await self._writer.flush()
            return live

    async def delete(self, run_id: str) -> None:
        """Cancels it first. RunNotFound."""
        async with self._changing:
            await self.cancel(run_id)
            self.shelf.forget(run_id)
            await self._writer.delete(run_id)
        with suppress(sqlite3.Error):
            await self._log.give_back()

    async def close(self) -> None:
        """Interrupts what is under way, and keeps all of it; final."""
        if self._is_closing:
            return
        self._is_closing = True
        under_way = self.shelf.under_way()
        for live in under_way:
            live.stop("interrupted")
        if tasks := [live.task for live in under_way if live.task is not None]:
            await asyncio.wait(tasks, timeout=_CLOSING_SECONDS)
        await self._writer.close()

    # A run's own task ------------------------------------------------------------------------

    async def _asked(self, request: ChatRequest, body: bytes) -> Asked:
        asked = await asked_of(request, body, self._pictures)
        model = await self._pool.name_of(request.model, asked.task)
        return replace(asked, model=model, wants_usage=True)

    async def _found(self, run_id: str) -> LiveRun | Run | None:
        try:
            return await self.shelf.find(run_id)
        except RunNotFound:
            return None

    def _begin(self, live: LiveRun, asked: Asked, until_over: ExitStack) -> None:
        """What `until_over` holds is left once the run is over."""
        if self._is_closing:
            raise ShuttingDown("Eloquio is shutting down.")
        self.shelf.add(live)
        self._writer.note(live)
        live.task = asyncio.create_task(self._carry_out(live, asked), name=live.run.id)
        leave = until_over.pop_all().close
        live.task.add_done_callback(lambda _: leave())

    async def _carry_out(self, live: LiveRun, asked: Asked) -> None:
        live.has_begun = True
        exchange = Exchange(id=live.run.id, route="/runs", is_stream=True)
        self._request_log.begin(exchange)
        error: EloquioError | None = None
        status: RunStatus = "completed"
        try:
            if live.stopped_as is None:
                await self._generate(live, asked, exchange)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
        except EloquioError as failure:
            status, error = "failed", failure
        except Exception:
            logger.exception("run_failed", run=live.run.id)
            status, error = "failed", Unexpected()
        live.is_ending = True
        if live.stopped_as is not None:
            status, error = live.stopped_as, None
            if status == "interrupted":
                error = RunInterrupted("Eloquio was shut down during the answer.")
        exchange.ends(status if status in ("completed", "cancelled") else "failed", error)
        self._request_log.end(exchange)
        try:
            await self._end(live, status, error)
        except Exception:
            logger.exception("run_end_failed", run=live.run.id)
        finally:
            live.close()

    async def _generate(self, live: LiveRun, asked: Asked, exchange: Exchange) -> None:
        def begin() -> None:
            live.begin()
            self._writer.note(live)

        async with aclosing(generate(self._pool, at_once(asked), exchange, begin)) as blocks:
            async for block in blocks:
                events = list(data_of(block))
                if live.first_number > 1 and not live.events and events:
                    # A message has one beginning, though it be continued.
                    events = events[1:] if only_names_the_role(events[0]) else events
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
            self.shelf.forget(live.run.id)
            with suppress(sqlite3.Error):
                await self._log.delete_old()
                await self._log.give_back()
        else:
            self.shelf.forget_older_unkept()


def _new_run(run_id: str | None, asked: Asked) -> LiveRun:
    assert asked.model is not None
    run = Run(
        id=run_id or f"run-{uuid.uuid4().hex}",
        model=asked.model,
        status="queued",
        created=time.time(),
    )
    return LiveRun(run, asked.body)


def _again(model: str, request: bytes, so_far: Message) -> tuple[Asked, str | None]:
    """What is asked by a run that goes on, and the `cancel_id` that it had."""
    return asked_again(model, continued(request, so_far)), cancel_id_of(request)


async def _unless_cancelled(preparing: asyncio.Task[Asked]) -> Asked:
    try:
        return await preparing
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RequestCancelled("The request was cancelled.") from None


async def _ended(live: LiveRun) -> None:
    if live.task is not None and not live.is_over:
        await asyncio.wait([live.task])


def _inside(error: EloquioError) -> dict[str, Any]:
    inside: dict[str, Any] = error.body()["error"]
    return inside
