"""A run that is under way: its events in memory, for any number of readers."""

import asyncio
from dataclasses import replace

from eloquio.chat.runs.log import Batch, Run, RunStatus


class LiveRun:
    """Its own task adds to it, readers look at it, and the writer keeps what isn't kept yet.

    A run that is continued has events from before; here are only those since then, which all
    readers share.
    """

    def __init__(
        self, run: Run, request: bytes, first_number: int = 1, *, is_continued: bool = False
    ) -> None:
        self.run = run
        self.request = request
        """What its row is kept with, whenever that has to be written."""
        self.first_number = first_number
        self.events: list[bytes] = []
        self.task: asyncio.Task[None] | None = None
        self.has_begun = False
        self.stopped_as: RunStatus | None = None
        """Why its generation is being stopped, once it is."""
        self.is_ending = False
        """Its generation is over, and nothing stops it any more."""
        self.is_over = False
        """No event comes any more, and `run` says how it ended."""
        self.is_failing_to_be_kept = False
        self._changed = asyncio.Event()
        self._has_row = is_continued
        self._kept_run: Run | None = None
        self._kept_events = 0

    @property
    def last_number(self) -> int:
        return self.first_number + len(self.events) - 1

    @property
    def is_row_kept(self) -> bool:
        return self._has_row

    @property
    def is_kept(self) -> bool:
        return self._kept_run == self.run and self._kept_events == len(self.events)

    def begin(self) -> None:
        self.run = replace(self.run, status="running")

    def add(self, events: list[bytes]) -> None:
        self.events += events
        self._tell_readers()

    def stop(self, status: RunStatus) -> None:
        """Ends the generation, if nothing has yet. Only the first reason counts."""
        if self.stopped_as is not None or self.is_ending:
            return
        self.stopped_as = status
        # Before its first step a task that is cancelled would end without a word.
        if self.task is not None and self.has_begun:
            self.task.cancel()

    def close(self) -> None:
        self.is_over = True
        self._tell_readers()

    async def changes_within(self, seconds: float) -> bool:
        """Whether there was something new for a reader that had seen it all."""
        try:
            # Not wait_for, which makes a task each time: this is once for each token and reader.
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _tell_readers(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    # For the writer --------------------------------------------------------------------------

    def unkept_batch(self) -> Batch | None:
        if self._kept_events == len(self.events):
            return None
        first_number = self.first_number + self._kept_events
        return Batch(self.run.id, first_number, self.events[self._kept_events :])

    def batch_is_kept(self, batch: Batch) -> None:
        self._kept_events = batch.last_number - self.first_number + 1

    def run_is_kept(self, run: Run) -> None:
        self._has_row = True
        self._kept_run = run

    def run_is_doubtful(self) -> None:
        """Nobody knows what of it is kept: it is written as if for the first time."""
        self._has_row = False
        self._kept_run = None
