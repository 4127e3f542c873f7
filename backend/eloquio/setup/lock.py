"""One set-up of a checkout at a time."""

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path

from eloquio.setup.checkout import Checkout
from eloquio.setup.console import Console


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


@contextlib.contextmanager
def only_one(checkout: Checkout, console: Console) -> Iterator[None]:
    """While this checkout is made ready; another run that does so is waited for, and that said."""

    def say_busy() -> None:
        console.say("Another run is making this checkout ready; waiting for it …")

    with locked(checkout.venv / "setup.lock", when_busy=say_busy):
        yield
