"""The private folder of one backend process: its engines' sockets and pid files."""

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from eloquio.engines import pid_file
from eloquio.engines.address import MAX_SOCKET_PATH_BYTES

_LONGEST_NAME_BYTES = len("/0123456789.sock")
# Another backend that starts or ends may remove the folder before it is locked.
_MOST_ATTEMPTS = 100


class RunFolder:
    """Held by a lock, so that what a killed backend left behind is known to be nobody's."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, home: Path, runtime_dir: Path | None) -> "RunFolder":
        """A new folder. What backends that are dead left in theirs is ended and removed first."""
        parent = _parent(home, runtime_dir)
        failure = OSError(errno.EBUSY, "The folder for engines is always taken")
        for _ in range(_MOST_ATTEMPTS):
            try:
                parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                parent.chmod(0o700)
                _remove_abandoned(parent)
                path = Path(tempfile.mkdtemp(dir=parent, prefix=""))
                lock = _lock(path)
                if lock is not None:
                    return cls(path, lock)
            except (FileNotFoundError, FileExistsError) as missing:
                failure = missing
        raise failure

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
    with suppress(FileExistsError):
        shared.mkdir(mode=0o700)
    status = shared.lstat()
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
        return shared
    # Somebody else took the name, which can be guessed.
    return Path(tempfile.mkdtemp(prefix="eloquio-"))


def _lock(path: Path) -> int | None:
    """The lock of the new folder, or None when another backend took it for an abandoned one."""
    lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), (path / "lock").stat()):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _remove_abandoned(parent: Path) -> None:
    with ExitStack() as locks:
        abandoned = [folder for folder in parent.iterdir() if _is_abandoned(folder, locks)]
        living = pid_file.reap(path for folder in abandoned for path in folder.glob("*.pid"))
        for folder in abandoned:
            if not any(path.parent == folder for path in living):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path, locks: ExitStack) -> bool:
    """Whether its backend is dead. Then `locks` holds it, so that no other start deals with it."""
    if folder.is_symlink():
        return False
    with suppress(OSError):
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        lock = os.open(folder / "lock", flags)
        locks.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
