"""Room in memory that threads share."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Room:
    """Who needs some of it waits until there is as much; who needs more than all gets it alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._free = size
        self._changed = threading.Condition()

    @contextmanager
    def of(self, wanted: int) -> Iterator[None]:
        taken = min(wanted, self._size)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= taken)
            self._free -= taken
        try:
            yield
        finally:
            with self._changed:
                self._free += taken
                self._changed.notify_all()
