"""The folders models may lie in, and what lies in them."""

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


class FolderContent(NamedTuple):
    """A folder, and the files that lie directly in it."""

    path: Path
    files: tuple[Path, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(file.name for file in self.files)


def contents(top: Path, allowed: AllowedFolders) -> list[FolderContent]:
    """Of `top` and every folder below it, in order.

    Hidden files and folders, Hugging Face's own, what lies deeper than eight folders, and links
    that lead out of the allowed folders or to nothing are left out.
    """
    return sorted(_walk(top, allowed), key=lambda content: content.path)


def _walk(top: Path, allowed: AllowedFolders) -> Iterator[FolderContent]:
    waiting = [(top, 0)]
    seen: set[str] = set()
    visited = 0
    while waiting and visited <= _MAX_VISITED:
        folder, depth = waiting.pop()
        real = os.path.realpath(folder)
        if real in seen or depth > _MAX_DEPTH:
            continue
        seen.add(real)
        entries = _entries(folder)[: _MAX_VISITED - visited]
        visited += len(entries) + 1
        content = FolderContent(folder, tuple(_files(folder, entries, allowed)))
        waiting += [(path, depth + 1) for path in _folders(folder, entries, allowed)]
        if content.files:
            yield content


def content_of(folder: Path, allowed: AllowedFolders) -> FolderContent:
    """The one folder alone, hidden or not."""
    return FolderContent(folder, tuple(_files(folder, _entries(folder), allowed)))


def _files(
    folder: Path, entries: Sequence[os.DirEntry[str]], allowed: AllowedFolders
) -> Iterator[Path]:
    for entry in entries:
        if _is_seen(folder, entry, allowed) and _is_file(entry):
            yield folder / entry.name


def _folders(
    folder: Path, entries: Sequence[os.DirEntry[str]], allowed: AllowedFolders
) -> Iterator[Path]:
    for entry in entries:
        is_hub = entry.name.startswith("models--")
        if not is_hub and _is_folder(entry) and _is_seen(folder, entry, allowed):
            yield folder / entry.name


def _is_seen(folder: Path, entry: os.DirEntry[str], allowed: AllowedFolders) -> bool:
    if entry.name.startswith("."):
        return False
    return not entry.is_symlink() or allowed.contain(folder / entry.name)


def is_gguf(file: Path) -> bool:
    return file.suffix.lower() == ".gguf"


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


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
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
