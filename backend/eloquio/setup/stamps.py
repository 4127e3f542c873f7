"""What was made from which inputs, so that nothing is made twice and nothing stays outdated."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path


class Stamp:
    """A small file that says from what something was made; written when it was made in full."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def text(self) -> str | None:
        try:
            return self._path.read_text(encoding="utf-8")
        except OSError:
            return None

    def says(self, text: str) -> bool:
        return self.text() == text

    def write(self, text: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_name(self._path.name + ".new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(self._path)

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)


def digest(root: Path, files: Iterable[Path], *texts: str) -> str:
    """One value for the names below the root and the contents of these files, and for the texts."""
    whole = hashlib.sha256()
    for text in texts:
        whole.update(f"{len(text)} {text}\n".encode())
    for file in files:
        content = file.read_bytes()
        whole.update(f"{file.relative_to(root)} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()


def files_below(folder: Path, *, but: Iterable[str] = ()) -> Iterator[Path]:
    """Every file below the folder in a fixed order, leaving out folders of these names."""
    left_out = set(but)
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in left_out)
        # An editor's lock can be a link to nowhere.
        yield from (path for name in sorted(names) if (path := Path(parent, name)).is_file())
