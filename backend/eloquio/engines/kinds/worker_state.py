"""What can be told of the torch environment from outside, while it is made or after."""

import re
from contextlib import suppress
from pathlib import Path

import psutil

from eloquio.setup.checkout import Checkout
from eloquio.setup.lock import Locked, locked
from eloquio.setup.tools import Tools
from eloquio.setup.worker import WorkerEnvironment, lock_of, log_of

_LAST_BYTES = 8192
_MOST_CHARACTERS = 200
_TERMINAL_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def is_made(checkout: Checkout, home: Path) -> bool:
    """Whether it is whole; False too where this isn't a checkout that could have one."""
    try:
        return WorkerEnvironment(checkout, home, Tools()).is_made()
    except FileNotFoundError:
        return False


def is_being_made(checkout: Checkout) -> bool:
    """Whether a process makes it now, or waits for this server to be up before it does."""
    if _has_maker():
        return True
    lock = lock_of(checkout)
    if not lock.is_file():
        return False
    try:
        with locked(lock):
            return False
    except Locked:
        return True


def last_words(home: Path) -> str:
    """The last line of what set-up wrote while it made the environment; empty before the first."""
    try:
        with log_of(home).open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - _LAST_BYTES))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = (_TERMINAL_CODES.sub("", line).strip() for line in re.split(r"[\r\n]+", text))
    said = [line for line in lines if line]
    return said[-1][:_MOST_CHARACTERS] if said else ""


def _has_maker() -> bool:
    """`scripts/start` leaves the one that it starts to the server as a child."""
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            words = child.cmdline()
            if "eloquio.setup" in words and "worker" in words:
                return child.status() != psutil.STATUS_ZOMBIE
    return False
