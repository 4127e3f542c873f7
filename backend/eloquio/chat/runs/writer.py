"""Keeps live runs in SQLite, a batch for all of them at a time."""

import asyncio
import sqlite3

import structlog

from eloquio.chat.runs.live_run import LiveRun
from eloquio.chat.runs.log import RunLog

# What a killed backend loses of a run: less than a person notices, and few enough writes for many
# runs at once.
_PAUSE_SECONDS = 0.2

logger = structlog.get_logger(__name__)


class RunWriter:
    """A disk that fails ends no run: what couldn't be written is tried again with what follows."""

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._changed: dict[str, LiveRun] = {}
        self._has_changes = asyncio.Event()
        self._writing = asyncio.Lock()
        self._task = asyncio.create_task(self._write_on(), name="run writer")

    def note(self, live: LiveRun) -> None:
        """There is something of it to keep."""
        self._changed[live.run.id] = live
        self._has_changes.set()

    async def flush(self) -> None:
        """Returns when all that was noted is kept, or couldn't be."""
        async with self._writing:
            runs = list(self._changed.values())
            self._changed.clear()
            self._has_changes.clear()
            is_kept = False
            try:
                await self._keep(runs)
                is_kept = True
            except sqlite3.Error as error:
                for live in runs:
                    self._tell_failing(live, error)
            finally:
                for live in runs:
                    if is_kept:
                        live.is_failing_to_be_kept = False
                    else:
                        live.run_is_doubtful()
                        self.note(live)

    async def delete(self, run_id: str) -> None:
        """Not beside a write, which would bring a part of it back."""
        async with self._writing:
            self._changed.pop(run_id, None)
            await self._log.delete(run_id)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        await self.flush()

    async def _write_on(self) -> None:
        while True:
            await self._has_changes.wait()
            try:
                await self.flush()
            except Exception:
                logger.exception("run_writer_failed")
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _keep(self, runs: list[LiveRun]) -> None:
        for live in runs:
            if not live.is_row_kept:
                run = live.run
                await self._log.insert(run, live.request)
                live.run_is_kept(run)
        batches = [(live, batch) for live in runs if (batch := live.unkept_batch()) is not None]
        await self._log.append([batch for _, batch in batches])
        for live, batch in batches:
            live.batch_is_kept(batch)
        # After its events: a run that says it is whole is whole.
        for live in runs:
            if not live.is_kept:
                run = live.run
                await self._log.update(run)
                live.run_is_kept(run)

    def _tell_failing(self, live: LiveRun, error: sqlite3.Error) -> None:
        # Once, not five times a second.
        if not live.is_failing_to_be_kept:
            live.is_failing_to_be_kept = True
            logger.error("run_not_kept", run=live.run.id, reason=str(error))
