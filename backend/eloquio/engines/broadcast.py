"""Tells any number of listeners that something changed; a late one sees what is true now."""

import asyncio
from collections.abc import AsyncIterator, Callable
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

    async def watch(self, read: Callable[[], Value]) -> AsyncIterator[Value]:
        """`read()` now and again after each change, for as long as the broadcast lives."""
        while not self._is_closed:
            changed = self._changed
            yield read()
            await changed.wait()
