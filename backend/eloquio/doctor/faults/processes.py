"""The stand-ins' processes, seen from outside."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from eloquio.doctor.faults.program import notes


def started_by(program: Path) -> list[dict[str, Any]]:
    """The notes of every process that this program ever was."""
    return [note for note in notes(program) if note["event"] in ("start", "fork")]


def is_alive(pid: int, program: Path) -> bool:
    """Whether it is there and is that program, and not somebody who got its number later."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and str(program) in process.cmdline()
    return False


def kill(pid: int, program: Path) -> None:
    if is_alive(pid, program):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
