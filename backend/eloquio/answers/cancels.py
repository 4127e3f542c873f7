"""The ids by which requests under way are cancelled."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

# A cancel may overtake the request that it is for.
_EARLY_SECONDS = 10.0
_ENDED_KEPT = 1000

Cancelled = Literal["cancelled", "ended", "expected"]


class Cancels:
    """Whoever begins with an id can be ended by it, and only while that goes on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._running: dict[str, list[tuple[Callable[[], object], asyncio.Event]]] = {}
        self._early: dict[str, float] = {}
        # In the order they ended: so that a cancel that comes late doesn't hit the next of its id.
        self._ended: dict[str, None] = {}

    @contextmanager
    def over(self, cancel_id: str | None, cancel: Callable[[], object]) -> Iterator[None]:
        """While the block runs, `cancel_id` ends it by `cancel`; at once if it came early."""
        if cancel_id is None:
            yield
            return
        entry = (cancel, asyncio.Event())
        self._running.setdefault(cancel_id, []).append(entry)
        if self._early.pop(cancel_id, 0.0) > self._clock():
            cancel()
        try:
            yield
        finally:
            self._remove(cancel_id, entry)

    async def cancel(self, cancel_id: str) -> Cancelled:
        """Returns once what was running under the id has ended."""
        running = list(self._running.get(cancel_id, ()))
        for cancel, _ in running:
            cancel()
        for _, has_ended in running:
            await has_ended.wait()
        if running:
            return "cancelled"
        if cancel_id in self._ended:
            return "ended"
        now = self._clock()
        self._early = {early: until for early, until in self._early.items() if until > now}
        self._early[cancel_id] = now + _EARLY_SECONDS
        return "expected"

    def _remove(self, cancel_id: str, entry: tuple[Callable[[], object], asyncio.Event]) -> None:
        self._running[cancel_id].remove(entry)
        if not self._running[cancel_id]:
            del self._running[cancel_id]
        entry[1].set()
        self._ended.pop(cancel_id, None)
        self._ended[cancel_id] = None
        while len(self._ended) > _ENDED_KEPT:
            del self._ended[next(iter(self._ended))]
