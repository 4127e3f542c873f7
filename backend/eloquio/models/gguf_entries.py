"""The GGUF models among a place's files: their parts, their projectors, and what they are."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from eloquio.engines.spec import Task
from eloquio.errors import EloquioError, ModelShardMissing
from eloquio.models.byte_source import shown_name
from eloquio.models.entry import GgufFiles, ModelEntry
from eloquio.models.file_cache import FileCache, size_and_time
from eloquio.models.folders import is_gguf
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
from eloquio.models.naming import Ids, Place, gguf_name


class _Found(NamedTuple):
    """The files of one model, before it has a name."""

    place: Place
    shards: tuple[Path, ...]
    missing: tuple[str, ...]
    projector: Path | None


class GgufEntries:
    """Headers are read again only when a file changed."""

    def __init__(self) -> None:
        self._headers: FileCache[GgufHeader] = FileCache(read_header)

    def of(self, place: Place, ids: Ids, seen: set[str]) -> Iterable[ModelEntry]:
        """Those that no earlier place had; `seen` gets the real path of each file."""
        for found in self._models(place, seen):
            yield self._entry(found, ids)

    def of_file(self, path: Path, ids: Ids) -> ModelEntry:
        """Of one that a scan passes by: hidden, too deep, or without `.gguf`."""
        place = Place("folder", path.parent, None)
        return self._entry(_Found(place, (path,), _missing_shards([path]), None), ids)

    def forget_all_but(self, files: set[str]) -> None:
        self._headers.forget_all_but(files)

    def _models(self, place: Place, seen: set[str]) -> Iterable[_Found]:
        """The models among a place's files, each with its projector."""
        new: list[Path] = []
        for file in place.files:
            real = os.path.realpath(file)
            if is_gguf(file) and real not in seen:
                seen.add(real)
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

    def _entry(self, found: _Found, ids: Ids) -> ModelEntry:
        first = found.shards[0]
        headers = [self._headers.read(shard) for shard in found.shards]
        readable = [header for header in headers if isinstance(header, GgufHeader)]
        header = headers[0] if isinstance(headers[0], GgufHeader) else None
        task, problem = _task_or_problem(found, headers)
        quant = (
            quant_in(stem_of(first))
            or quant_in(first.parent.name)
            or (header.quant if header else None)
        )
        name = gguf_name(found.place, first, quant)
        return ModelEntry(
            id=ids.unused(name.ids),
            display_name=name.display_name,
            source=found.place.source,
            path=first,
            files=GgufFiles(
                shards=found.shards,
                quant=quant,
                projector=found.projector,
                projector_bytes=size_and_time(found.projector)[0] if found.projector else 0,
                header=header,
            ),
            size_bytes=sum(size_and_time(shard)[0] for shard in found.shards),
            weights_bytes=sum(header.weights_bytes for header in readable),
            problem=problem,
            task=task,
            created=size_and_time(first)[1] // 1_000_000_000,
            repository=name.repository,
        )


def _task_or_problem(
    found: _Found, headers: Sequence[GgufHeader | EloquioError]
) -> tuple[Task, EloquioError | None]:
    first = found.shards[0]
    if found.missing:
        return "chat", ModelShardMissing(
            f"Of {shown_name(stem_of(first))}, {len(found.missing)} of "
            f"{len(found.missing) + len(found.shards)} parts are missing: "
            f"{', '.join(shown_name(name) for name in found.missing[:8])}"
            f"{'…' if len(found.missing) > 8 else '.'}"
        )
    for header in headers:
        if isinstance(header, EloquioError):
            return "chat", header
    assert isinstance(headers[0], GgufHeader)
    try:
        return identify(headers[0], shown_name(first.name)), None
    except EloquioError as unsupported:
        return "chat", unsupported


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
