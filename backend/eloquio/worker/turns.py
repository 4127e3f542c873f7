"""Who may use the model now: its adapter is one for all who compute at the same moment."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class ModelTurns:
    """A lock that is given in the order it was asked for, with the model switched for its holder.

    Each holder keeps it for one step, so that requests with different adapters take turns.
    """

    def __init__(self, switch: Callable[[str | None], None]) -> None:
        """`switch` makes the model run with an adapter of this name, or plain."""
        self._switch = switch
        self._active: str | None = None
        self._is_switched = False
        self._lock = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._is_taken = False

    @contextmanager
    def turn(self, adapter: str | None) -> Iterator[None]:
        self._take()
        try:
            if not self._is_switched or self._active != adapter:
                self._switch(adapter)
                self._active, self._is_switched = adapter, True
            yield
        finally:
            self._give()

    def _take(self) -> None:
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()

    def _give(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False
