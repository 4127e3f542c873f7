"""An engine and all that it started, told apart from every stranger."""

import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil

# Every process an engine starts inherits it, whatever session or group it moves to.
MARK_VARIABLE = "ELOQUIO_ENGINE_MARK"
# Listing all processes of a busy machine takes some milliseconds.
_LOOK_SECONDS = 1.0
# One that forks while it is being killed is met again in the next round.
_MOST_ROUNDS = 5


def new_mark() -> str:
    return secrets.token_hex(16)


def is_alive(process: psutil.Process) -> bool:
    """Whether this very process still runs, and not another that was given its number."""
    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


class Family:
    """`root`, its descendants, and whoever bears its mark.

    A process is signalled only as the one that was met: psutil compares its start time first.
    """

    def __init__(self, root: psutil.Process | None, mark: str) -> None:
        self._root = root
        self._mark = mark
        self._descendants: set[psutil.Process] = set()
        self._looked_at = -_LOOK_SECONDS

    def members(self) -> list[psutil.Process]:
        """The root and its descendants, who are looked for once a second at most."""
        if time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self.look()
        return [*([] if self._root is None else [self._root]), *self._descendants]

    def look(self) -> None:
        """Remember the descendants: once their parents are gone, nothing says whose they are."""
        self._looked_at = time.monotonic()
        known = {process for process in self._descendants if is_alive(process)}
        with suppress(psutil.Error):
            if self._root is not None:
                known |= set(self._root.children(recursive=True))
        self._descendants = known

    def signal_group(self, number: signal.Signals) -> None:
        """To the root's whole group, or to the root alone where the group is somebody else's."""
        root = self._root
        if root is None or not root.is_running():
            return
        with suppress(psutil.Error, ProcessLookupError, PermissionError):
            if os.getpgid(root.pid) == root.pid:
                os.killpg(root.pid, number)
            else:
                root.send_signal(number)

    def kill(self, group_until: float | None = None) -> set[psutil.Process]:
        """SIGKILL to every one of them; answers who was met.

        When the root has just ended, `group_until` is the time of that: a process older than that
        in the group of the root's number belongs here. Later the number may be a stranger's.
        """
        self.look()
        met = {process for process in self.members() if is_alive(process)}
        self.signal_group(signal.SIGKILL)
        _kill(met)
        for _ in range(_MOST_ROUNDS):
            others = set(self._others(group_until)) - met
            if not others:
                break
            _kill(others)
            met |= others
        return met

    def _others(self, group_until: float | None) -> Iterator[psutil.Process]:
        for pid in psutil.pids():
            if pid > 1 and pid != os.getpid():
                with suppress(psutil.Error):
                    process = psutil.Process(pid)
                    is_ours = self._bears_mark(process) or self._was_in_group(process, group_until)
                    if is_ours and is_alive(process):
                        yield process

    def _bears_mark(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error, OSError):
            return (
                process.uids().real == os.getuid()
                and process.environ().get(MARK_VARIABLE) == self._mark
            )
        return False

    def _was_in_group(self, process: psutil.Process, until: float | None) -> bool:
        if self._root is None or until is None:
            return False
        with suppress(psutil.Error, OSError):
            return os.getpgid(process.pid) == self._root.pid and process.create_time() <= until
        return False


def _kill(processes: set[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
