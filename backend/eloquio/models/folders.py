"""The folders models may lie in, and the GGUF files in them."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_MAX_DEPTH = 8
_MAX_VISITED = 50_000


class AllowedFolders:
    """Decides by real paths, so that neither `..` nor a link leads out."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(dict.fromkeys(folder.absolute() for folder in folders))
        self._real = tuple(os.path.realpath(folder) for folder in self.folders)

    def contain(self, path: Path | str) -> bool:
        """Whether the real `path` lies in one of them; it needn't exist."""
        real = os.path.realpath(path)
        return any(is_under(real, folder) for folder in self._real)


class HubRepository(NamedTuple):
    """A repository in a Hugging Face cache, at the snapshot that counts."""

    name: str
    snapshot: Path


def is_under(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it; both are real paths."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def gguf_files(folder: Path, allowed: AllowedFolders) -> list[Path]:
    """Every GGUF file below `folder`, in order.

    Hidden folders, Hugging Face's own, what lies deeper than eight folders, and links that lead out
    of the allowed folders or to nothing are left out.
    """
    return sorted(_walk(folder, allowed))


def _walk(top: Path, allowed: AllowedFolders) -> Iterator[Path]:
    waiting = [(top, 0)]
    seen: set[str] = set()
    visited = 0
    while waiting:
        folder, depth = waiting.pop()
        real = os.path.realpath(folder)
        if real in seen or depth > _MAX_DEPTH:
            continue
        seen.add(real)
        for entry in _entries(folder):
            visited += 1
            if visited > _MAX_VISITED:
                return
            if entry.name.startswith("."):
                continue
            path = folder / entry.name
            if entry.is_symlink() and not allowed.contain(path):
                continue
            if _is_folder(entry):
                if not entry.name.startswith("models--"):
                    waiting.append((path, depth + 1))
            elif entry.name.lower().endswith(".gguf") and path.is_file():
                yield path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Nothing for a folder that is missing or may not be read: the others still count."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def hub_repositories(cache: Path) -> list[HubRepository]:
    """The repositories of a folder laid out as Hugging Face's cache is: `models--org--repo/…`."""
    found = []
    for entry in _entries(cache):
        kind, *parts = entry.name.split("--")
        if kind != "models" or not parts or not _is_folder(entry):
            continue
        snapshot = _snapshot(cache / entry.name)
        if snapshot is not None:
            found.append(HubRepository("/".join(parts), snapshot))
    return found


def _snapshot(repository: Path) -> Path | None:
    """What `refs/main` names, else the newest."""
    snapshots = [
        repository / "snapshots" / entry.name
        for entry in _entries(repository / "snapshots")
        if _is_folder(entry)
    ]
    try:
        main = (repository / "refs" / "main").read_text("ascii")[:100].strip()
    except (OSError, UnicodeDecodeError):
        main = ""
    for snapshot in snapshots:
        if snapshot.name == main:
            return snapshot
    return max(snapshots, key=lambda snapshot: snapshot.stat().st_mtime_ns, default=None)
