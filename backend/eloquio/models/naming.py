"""What the models in a place are called: by the layout of its folders, each by its own name."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

from eloquio.models.byte_source import printable
from eloquio.models.entry import Source
from eloquio.models.folders import FolderContent
from eloquio.models.names import quant_in, stem_of, without_quant

# Its own header calls it by the name of a training run.
_BUILTIN_NAMES = {"smollm2-135m-instruct": "SmolLM2 135M Instruct"}


@dataclass(frozen=True)
class Place:
    """Where files were found, and how names in it are made."""

    source: Source
    folder: Path
    repository: str | None
    contents: Sequence[FolderContent] = ()

    @property
    def files(self) -> list[Path]:
        return sorted(file for content in self.contents for file in content.files)


class Name(NamedTuple):
    """`ids` are in order of preference."""

    ids: tuple[str, ...]
    display_name: str
    repository: str | None


class Ids:
    """Those that are taken, in any case."""

    def __init__(self, used: Sequence[str] = ()) -> None:
        self._used = {name.casefold() for name in used}

    def unused(self, ids: tuple[str, ...]) -> str:
        """The first of `ids` that is still free, else the last with a number; it is then used."""
        numbered = (f"{ids[-1]}-{number}" for number in count(2))
        chosen = next(name for name in chain(ids, numbered) if name.casefold() not in self._used)
        self._used.add(chosen.casefold())
        return chosen


def gguf_name(place: Place, first: Path, quant: str | None) -> Name:
    """Of the model whose first file that is."""
    stem = printable(stem_of(first))
    relative = first.relative_to(place.folder).parent
    if place.source == "builtin":
        display_name = _BUILTIN_NAMES.get(stem) or without_quant(stem)
        return Name((f"builtin/{stem}",), display_name, None)
    repository = place.repository or _repository_of(relative)
    if repository is not None:
        repository = printable(repository)
        display_name = repository.rpartition("/")[2]
        if display_name.lower().endswith("-gguf"):
            display_name = display_name[:-5]
        ids = (f"{repository}:{quant or stem}", f"{repository}:{stem}")
        return Name(ids, display_name, repository)
    name = printable((relative / stem_of(first)).as_posix())
    ids = (name, f"{printable(place.folder.name)}/{name}")
    return Name(ids, without_quant(stem), None)


def folder_name(place: Place, folder: Path) -> Name:
    """Of the model that is this whole folder."""
    relative = folder.relative_to(place.folder)
    if place.repository is not None:
        repository = printable(place.repository)
        whole = (Path(repository) / relative).as_posix()
        name = printable(whole)
        return Name((name,), name.rpartition("/")[2], repository)
    if not relative.parts:
        name = printable(folder.name)
        return Name((name,), name, None)
    name = printable(relative.as_posix())
    ids = (name, f"{printable(place.folder.name)}/{name}")
    return Name(ids, name.rpartition("/")[2], name if len(relative.parts) == 2 else None)


def _repository_of(relative_folder: Path) -> str | None:
    """`org/repo` of a file in `org/repo`, or in a folder of one quant in it."""
    parts = relative_folder.parts
    if len(parts) == 2 or (len(parts) == 3 and quant_in(parts[2])):
        return "/".join(parts[:2])
    return None
