"""Whose turn it is: an engine takes as many requests at once as it has slots."""

import asyncio
from collections import deque

from eloquio.errors import QueueFull

_RETRY_SECONDS = 5


def refuse_beyond(most_waiting: int, waiting: int) -> None:
    """QueueFull where no more than so many may wait, and they do."""
    if waiting >= most_waiting:
        raise QueueFull(
            f"{waiting} requests wait for the model already.", retry_after_seconds=_RETRY_SECONDS
        )


class Turns:
    """One engine's slots. Who finds none free waits, in the order of coming.

    The queue is here and not in the engine, so that who leaves it is gone at once, beside whatever
    else the engine does.
    """

    def __init__(self, slots: int, most_waiting: int) -> None:
        self.slots = slots
        self._free = slots
        self._most_waiting = most_waiting
        self._waiting: deque[tuple[int, asyncio.Future[bool]]] = deque()
        self._is_closed = False

    async def take(self, slots: int) -> bool:
        """Waits for so many slots at once; False if the engine ended first. QueueFull."""
        if self._is_closed:
            return False
        if slots == 0 or (not self._waiting and slots <= self._free):
            self._free -= slots
            return True
        refuse_beyond(self._most_waiting, len(self._waiting))
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        place = (slots, turn)
        self._waiting.append(place)
        try:
            return await turn
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
                # It may have been the one for which all behind it waited.
                self._hand_out()
            elif turn.result():
                self.give_back(slots)
            raise

    def give_back(self, slots: int) -> None:
        self._free += slots
        self._hand_out()

    def close(self) -> None:
        """The engine ends: nobody gets a turn any more."""
        self._is_closed = True
        for _, turn in self._waiting:
            if not turn.done():
                turn.set_result(False)
        self._waiting.clear()

    def _hand_out(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            slots, turn = self._waiting.popleft()
            if not turn.cancelled():
                self._free -= slots
                turn.set_result(True)
