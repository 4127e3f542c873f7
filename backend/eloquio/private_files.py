"""Files and folders that only their owner may read."""

import contextlib
import os
import tempfile
from pathlib import Path

_OTHERS = 0o077


def private_folder(path: Path) -> Path:
    """Make the folder with mode 0700, and close it to others if it is open to them."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    close_to_others(path)
    return path


def close_to_others(path: Path) -> None:
    """Take every right of the group and of others away, where the file is ours to change."""
    mode = path.stat().st_mode
    if mode & _OTHERS:
        with contextlib.suppress(PermissionError):
            path.chmod(mode & 0o777 & ~_OTHERS)


def create_private(path: Path, text: str) -> None:
    """Write a new file of mode 0600, whole or not at all. FileExistsError if there is one."""
    # A name for each who tries: two threads that shared one would take it from each other.
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        # A link, unlike a rename, doesn't take the place of a file that another process has made.
        os.link(draft, path)
    finally:
        Path(draft).unlink()
