"""One set-up of a checkout at a time."""

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path


class Locked(Exception):
    """Another process holds the lock."""


@contextlib.contextmanager
def locked(path: Path, *, when_busy: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock. While another process holds it: call `when_busy` and wait; without, Locked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if when_busy is None:
                raise Locked from None
            when_busy()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
