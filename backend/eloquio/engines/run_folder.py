"""The private folder of one backend process: its engines' sockets."""

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from eloquio.engines.address import MAX_SOCKET_PATH_BYTES

_LONGEST_NAME_BYTES = len("/0123456789.sock")


class RunFolder:
    """Held by a lock, so that what a killed backend left behind is known to be nobody's."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, home: Path, runtime_dir: Path | None) -> "RunFolder":
        parent = _parent(home, runtime_dir)
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        parent.chmod(0o700)
        _remove_abandoned(parent)
        path = Path(tempfile.mkdtemp(dir=parent, prefix=""))
        lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return cls(path, lock)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
        with suppress(OSError):
            # Ours alone, unless another backend has its folder there too.
            self.path.parent.rmdir()


def _parent(home: Path, runtime_dir: Path | None) -> Path:
    """`home/run`, or a folder with a shorter name when a socket's path would not fit."""
    wanted = home / "run"
    if len(str(wanted).encode()) + len("/abcdefgh") + _LONGEST_NAME_BYTES <= MAX_SOCKET_PATH_BYTES:
        return wanted
    if runtime_dir is not None and os.access(runtime_dir, os.W_OK):
        return runtime_dir / "eloquio"
    shared = Path(tempfile.gettempdir()) / f"eloquio-{os.getuid()}"
    shared.mkdir(mode=0o700, exist_ok=True)
    status = shared.lstat()
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
        return shared
    # Somebody else took the name, which can be guessed.
    return Path(tempfile.mkdtemp(prefix="eloquio-"))


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.iterdir():
        try:
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        finally:
            os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)
