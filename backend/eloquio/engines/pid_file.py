"""What is known of a started engine, kept for the backend that comes after a killed one."""

import json
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import structlog

from eloquio.engines.family import Family, is_alive

_MOST_BYTES = 16_384
_GREATEST_PID = 2**31 - 1
_MARK_LENGTH = 32
# The system's clock may have been set a little since.
_START_TOLERANCE_SECONDS = 1.0
_REAP_TIMEOUT_SECONDS = 2.0
_POLL_SECONDS = 0.01

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Record:
    """Enough to know a process again: its number alone may be anybody's by now."""

    pid: int
    started: float
    executable: str
    mark: str


def write_record(path: Path, record: Record) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w") as file:
        json.dump(asdict(record), file)


def read_record(path: Path) -> Record | None:
    """The record, or None for whatever isn't one."""
    try:
        # Neither a link nor a pipe is followed or waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            content = file.read(_MOST_BYTES + 1)
        return None if len(content) > _MOST_BYTES else _parse(json.loads(content))
    except (OSError, ValueError, RecursionError):
        return None


def _parse(content: object) -> Record | None:
    match content:
        case {
            "pid": int(pid),
            "started": float(started),
            "executable": str(executable),
            "mark": str(mark),
        } if 1 < pid <= _GREATEST_PID and executable and len(mark) == _MARK_LENGTH:
            return Record(pid, started, executable, mark)
    return None


def reap(paths: Iterable[Path]) -> set[Path]:
    """End the engines that these files of dead backends name, and what those had started.

    Answers the files whose processes are still there, which only a process that the system itself
    holds up makes happen.
    """
    orphans: dict[Path, set[psutil.Process]] = {}
    for path in paths:
        record = read_record(path)
        if record is not None:
            orphans[path] = Family(_orphan(record), record.mark).kill()
            for process in orphans[path]:
                logger.warning("orphan_reaped", pid=process.pid)
    return _still_there(orphans)


def _still_there(orphans: dict[Path, set[psutil.Process]]) -> set[Path]:
    deadline = time.monotonic() + _REAP_TIMEOUT_SECONDS
    while True:
        left = {path for path, killed in orphans.items() if any(map(is_alive, killed))}
        if not left or time.monotonic() > deadline:
            return left
        # They aren't our children: nothing tells us of their end.
        time.sleep(_POLL_SECONDS)


def _orphan(record: Record) -> psutil.Process | None:
    """The process, if it is provably the one that was recorded."""
    with suppress(psutil.Error, ValueError):
        process = psutil.Process(record.pid)
        if (
            record.pid != os.getpid()
            and abs(process.create_time() - record.started) <= _START_TOLERANCE_SECONDS
            and process.uids().real == os.getuid()
            and _runs(process, record.executable)
        ):
            return process
    return None


def _runs(process: psutil.Process, executable: str) -> bool:
    # The command line tells of a script, or of a program that was replaced on the disk since.
    if executable in process.cmdline():
        return True
    return process.exe() == os.path.realpath(executable)
