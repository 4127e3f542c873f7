"""What was read from files, kept until they change."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from eloquio.errors import EloquioError, ModelFileMissing, ModelFileUnreadable

T = TypeVar("T")


class FileCache(Generic[T]):
    """What `read` makes of a file, or why it can't, by file, size and time of the last change."""

    def __init__(self, read: Callable[[Path], T]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._known: dict[str, tuple[tuple[int, int], T | EloquioError]] = {}

    def read(self, file: Path) -> T | EloquioError:
        key = os.path.realpath(file)
        stamp = size_and_time(file)
        with self._lock:
            known = self._known.get(key)
        if known is not None and known[0] == stamp:
            return known[1]
        outcome: T | EloquioError
        try:
            outcome = self._read(file)
        except EloquioError as problem:
            outcome = problem.with_traceback(None)
        if not isinstance(outcome, ModelFileUnreadable | ModelFileMissing):
            with self._lock:
                self._known[key] = (stamp, outcome)
        return outcome

    def forget_all_but(self, files: set[str]) -> None:
        """Of those whose real paths are not in `files` nothing is kept."""
        with self._lock:
            self._known = {key: value for key, value in self._known.items() if key in files}


def size_and_time(file: Path) -> tuple[int, int]:
    """Bytes, and nanoseconds since 1970; zeros when the file has just gone."""
    try:
        status = file.stat()
    except OSError:
        return (0, 0)
    return (status.st_size, status.st_mtime_ns)
