"""Tells any number of listeners that something changed; a late one sees what is true now."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TypeVar

Value = TypeVar("Value")


class Broadcast:
    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._is_closed = False

    def publish(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def close(self) -> None:
        """Ends every listener's iteration."""
        self._is_closed = True
        self.publish()

    async def watch(
        self, read: Callable[[], Value], at_least_every_seconds: float | None = None
    ) -> AsyncIterator[Value]:
        """`read()` now, after each change, and after so long without one, until the end."""
        while not self._is_closed:
            changed = self._changed
            yield read()
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), at_least_every_seconds)
