"""What is on disk: built-in models, the person's folders, the local Hugging Face cache."""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Literal, NamedTuple

from eloquio.engines.spec import Task
from eloquio.errors import (
    EloquioError,
    ModelFileMissing,
    ModelFileUnreadable,
    ModelShardMissing,
)
from eloquio.models import references
from eloquio.models.byte_source import printable, shown_name
from eloquio.models.folders import AllowedFolders, gguf_files, hub_repositories
from eloquio.models.gguf import GgufHeader, read_header
from eloquio.models.identify import identify, is_projector
from eloquio.models.names import (
    likeness,
    precision_rank,
    quant_in,
    shard_of,
    stem_of,
    without_quant,
)
from eloquio.settings import Settings

Source = Literal["builtin", "folder", "hub_cache"]
# Its own header calls it by the name of a training run.
_BUILTIN_NAMES = {"smollm2-135m-instruct": "SmolLM2 135M Instruct"}


@dataclass(frozen=True)
class ModelEntry:
    """One model that lies on this machine; `problem` says why it can't be loaded."""

    id: str
    display_name: str
    source: Source
    path: Path
    """The file an engine is given: the first shard of several."""
    shards: tuple[Path, ...]
    size_bytes: int
    weights_bytes: int
    quant: str | None
    projector: Path | None
    projector_bytes: int
    header: GgufHeader | None
    problem: EloquioError | None
    task: Task
    created: int
    """When the file was last changed, in seconds since 1970."""
    repository: str | None = None
    """`org/repo`, where the layout of the folders tells it."""


class _Place(NamedTuple):
    """Where files were found, and how names in it are made."""

    source: Source
    folder: Path
    repository: str | None
    files: list[Path]


class _Found(NamedTuple):
    """The files of one model, before it has a name."""

    place: _Place
    shards: tuple[Path, ...]
    missing: tuple[str, ...]
    projector: Path | None


class Catalog:
    """The list of models, read anew at each look; headers are read again only when a file changed.

    `folders` gives the folders the person allowed, at the moment they are asked for.
    """

    def __init__(self, settings: Settings, folders: Callable[[], Sequence[Path]]) -> None:
        self._settings = settings
        self._folders = folders
        self._headers = _HeaderCache()

    def scan(self) -> list[ModelEntry]:
        """Every model on disk, the built-in ones first. Reads the disk: call it in a thread."""
        allowed = self.allowed_folders()
        entries: list[ModelEntry] = []
        used_ids: set[str] = set()
        seen_files: set[str] = set()
        for place in self._places(allowed):
            for found in self._models(place, seen_files):
                entries.append(self._entry(found, used_ids))
        self._headers.forget_all_but(seen_files)
        return entries

    def resolve(self, model_path: str, variant: str | None = None) -> ModelEntry:
        """The one model a person means; reads the disk, like `scan`.

        `model_path` is an id of the list, `org/repo` with or without `:QUANT`, or a path of a file
        or folder in an allowed folder. Each wrong input raises its own error of the catalogue.
        """
        references.refuse_unprintable(model_path, variant)
        entries = self.scan()
        entry = references.by_id(entries, model_path, variant)
        if entry is None:
            path = references.allowed_path(model_path, self.allowed_folders(), "model_path")
            if path is None:
                raise references.not_here(entries, model_path, variant)
            entry = references.at_path(entries, path, variant) or self._unlisted(path, entries)
        if entry.problem is not None:
            raise references.fresh(entry.problem)
        return entry

    def allowed_folders(self) -> AllowedFolders:
        settings = self._settings
        return AllowedFolders([settings.models_dir, *self._folders(), settings.hub_cache])

    def _places(self, allowed: AllowedFolders) -> Iterable[_Place]:
        builtin = self._settings.models_dir / "builtin"
        # Directly in it only: an id is `builtin/` and the file's name.
        builtin_files = [file for file in gguf_files(builtin, allowed) if file.parent == builtin]
        yield _Place("builtin", builtin, None, builtin_files)
        for folder in allowed.folders:
            for repository in hub_repositories(folder):
                files = gguf_files(repository.snapshot, allowed)
                yield _Place("hub_cache", repository.snapshot, repository.name, files)
        for folder in allowed.folders:
            if folder != self._settings.hub_cache:
                yield _Place("folder", folder, None, gguf_files(folder, allowed))

    def _models(self, place: _Place, seen_files: set[str]) -> Iterable[_Found]:
        """The models among a place's files that no earlier place had, each with its projector."""
        new: list[Path] = []
        for file in place.files:
            real = os.path.realpath(file)
            if real not in seen_files:
                seen_files.add(real)
                new.append(file)
        projectors = [file for file in new if self._is_projector(file)]
        models = [file for file in new if file not in projectors]
        groups: dict[tuple[Path, str], list[Path]] = {}
        for file in models:
            shard = shard_of(file)
            key = file.name if shard is None else shard.sibling_name(1)
            groups.setdefault((file.parent, key), []).append(file)
        for shards in groups.values():
            yield _Found(
                place,
                tuple(shards),
                _missing_shards(shards),
                _closest_projector(shards[0], projectors, models),
            )

    def _is_projector(self, file: Path) -> bool:
        header = self._headers.read(file)
        if isinstance(header, GgufHeader):
            return is_projector(header)
        return "mmproj" in file.name.lower()

    def _entry(self, found: _Found, used_ids: set[str]) -> ModelEntry:
        first = found.shards[0]
        headers = [self._headers.read(shard) for shard in found.shards]
        readable = [header for header in headers if isinstance(header, GgufHeader)]
        problem = next((header for header in headers if isinstance(header, EloquioError)), None)
        header = headers[0] if isinstance(headers[0], GgufHeader) else None
        task: Task = "chat"
        if found.missing:
            problem = ModelShardMissing(
                f"Of {shown_name(stem_of(first))}, {len(found.missing)} of "
                f"{len(found.missing) + len(found.shards)} parts are missing: "
                f"{', '.join(shown_name(name) for name in found.missing[:8])}"
                f"{'…' if len(found.missing) > 8 else '.'}"
            )
        elif problem is None and header is not None:
            try:
                task = identify(header, shown_name(first.name))
            except EloquioError as unsupported:
                problem = unsupported
        quant = (
            quant_in(stem_of(first))
            or quant_in(first.parent.name)
            or (header.quant if header else None)
        )
        name = _name(found, quant)
        return ModelEntry(
            id=_unused(name.ids, used_ids),
            display_name=name.display_name,
            source=found.place.source,
            path=first,
            shards=found.shards,
            size_bytes=sum(_size_and_time(shard)[0] for shard in found.shards),
            weights_bytes=sum(header.weights_bytes for header in readable),
            quant=quant,
            projector=found.projector,
            projector_bytes=_size_and_time(found.projector)[0] if found.projector else 0,
            header=header,
            problem=problem,
            task=task,
            created=_size_and_time(first)[1] // 1_000_000_000,
            repository=name.repository,
        )

    def _unlisted(self, path: Path, entries: Sequence[ModelEntry]) -> ModelEntry:
        """The entry of a file that a scan passes by: hidden, too deep, or without `.gguf`."""
        place = _Place("folder", path.parent, None, [path])
        found = _Found(place, (path,), _missing_shards([path]), None)
        return self._entry(found, {entry.id.casefold() for entry in entries})


class _HeaderCache:
    """Headers, or why they can't be read, by file, size and time of the last change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[tuple[int, int], GgufHeader | EloquioError]] = {}

    def read(self, file: Path) -> GgufHeader | EloquioError:
        key = os.path.realpath(file)
        stamp = _size_and_time(file)
        with self._lock:
            known = self._known.get(key)
        if known is not None and known[0] == stamp:
            return known[1]
        outcome: GgufHeader | EloquioError
        try:
            outcome = read_header(file)
        except EloquioError as problem:
            outcome = problem.with_traceback(None)
        if not isinstance(outcome, ModelFileUnreadable | ModelFileMissing):
            with self._lock:
                self._known[key] = (stamp, outcome)
        return outcome

    def forget_all_but(self, files: set[str]) -> None:
        with self._lock:
            self._known = {key: value for key, value in self._known.items() if key in files}


class _Name(NamedTuple):
    """`ids` are in order of preference."""

    ids: tuple[str, ...]
    display_name: str
    repository: str | None


def _name(found: _Found, quant: str | None) -> _Name:
    place, first = found.place, found.shards[0]
    stem = printable(stem_of(first))
    relative = first.relative_to(place.folder).parent
    if place.source == "builtin":
        display_name = _BUILTIN_NAMES.get(stem) or without_quant(stem)
        return _Name((f"builtin/{stem}",), display_name, None)
    repository = place.repository or _repository_of(relative)
    if repository is not None:
        repository = printable(repository)
        display_name = repository.rpartition("/")[2]
        if display_name.lower().endswith("-gguf"):
            display_name = display_name[:-5]
        ids = (f"{repository}:{quant or stem}", f"{repository}:{stem}")
        return _Name(ids, display_name, repository)
    name = printable((relative / stem_of(first)).as_posix())
    ids = (name, f"{printable(place.folder.name)}/{name}")
    return _Name(ids, without_quant(stem), None)


def _repository_of(relative_folder: Path) -> str | None:
    """`org/repo` of a file in `org/repo`, or in a folder of one quant in it."""
    parts = relative_folder.parts
    if len(parts) == 2 or (len(parts) == 3 and quant_in(parts[2])):
        return "/".join(parts[:2])
    return None


def _unused(ids: tuple[str, ...], used: set[str]) -> str:
    """The first of `ids` that is still free, else the last with a number; it is then used."""
    numbered = (f"{ids[-1]}-{number}" for number in count(2))
    chosen = next(name for name in chain(ids, numbered) if name.casefold() not in used)
    used.add(chosen.casefold())
    return chosen


def _missing_shards(shards: Sequence[Path]) -> tuple[str, ...]:
    shard = shard_of(shards[0])
    if shard is None:
        return ()
    here = {path.name for path in shards}
    names = (shard.sibling_name(number) for number in range(1, shard.total + 1))
    return tuple(name for name in names if name not in here)


def _closest_projector(
    model: Path, projectors: Sequence[Path], models: Sequence[Path]
) -> Path | None:
    """The projector in the model's folder, or around its quant's folder, that is named most alike.

    In a folder of several models, each projector belongs to those it is most alike.
    """
    folders = {model.parent} | ({model.parent.parent} if quant_in(model.parent.name) else set())
    candidates = [
        projector
        for projector in projectors
        if projector.parent in folders and _belongs(projector, model, models)
    ]
    return min(
        candidates,
        key=lambda file: (-likeness(file, model), precision_rank(file), file.name),
        default=None,
    )


def _belongs(projector: Path, model: Path, models: Sequence[Path]) -> bool:
    neighbours = [other for other in models if other.parent == model.parent]
    best = max(likeness(projector, other) for other in neighbours)
    # A name that shares nothing is no hint that the two don't belong together when it is alone.
    is_alone = len({without_quant(stem_of(other)).lower() for other in neighbours}) == 1
    return is_alone or 0.5 <= best == likeness(projector, model)


def _size_and_time(file: Path) -> tuple[int, int]:
    """Bytes, and nanoseconds since 1970; zeros when the file has just gone."""
    try:
        status = file.stat()
    except OSError:
        return (0, 0)
    return (status.st_size, status.st_mtime_ns)
