"""Where runs are found: in memory while they are under way, in SQLite after that."""

import asyncio
from collections.abc import AsyncIterator

from eloquio.chat.fold import Message, fold
from eloquio.chat.runs.live_run import LiveRun
from eloquio.chat.runs.log import Run, RunLog
from eloquio.errors import RunEventsLost, RunNotFound

# Of those that ended and can't be written, for want of a disk: their events stay in memory.
_UNKEPT_RUNS = 20


class RunShelf:
    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._live: dict[str, LiveRun] = {}

    # What is in memory -----------------------------------------------------------------------

    def add(self, live: LiveRun) -> None:
        self._live[live.run.id] = live

    def forget(self, run_id: str) -> None:
        self._live.pop(run_id, None)

    def forget_older_unkept(self) -> None:
        over = [live for live in self._live.values() if live.is_over]
        for live in over[:-_UNKEPT_RUNS]:
            del self._live[live.run.id]

    def under_way(self) -> list[LiveRun]:
        return [live for live in self._live.values() if not live.is_over]

    # What readers ask for --------------------------------------------------------------------

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

    async def _all_events(self, found: LiveRun | Run) -> list[bytes]:
        if not isinstance(found, LiveRun):
            return await self._log.events(found.id)
        kept = [event async for _, events in self.kept_events(found, 0) for event in events]
        return kept + found.events


def _id(found: LiveRun | Run) -> str:
    return found.run.id if isinstance(found, LiveRun) else found.id
