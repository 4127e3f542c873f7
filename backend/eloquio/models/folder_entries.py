"""The models and adapters that are whole folders, as Hugging Face's libraries save them."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from eloquio.engines.spec import Task
from eloquio.errors import EloquioError
from eloquio.models.adapter_config import AdapterConfig, adapter_config
from eloquio.models.byte_source import shown_name
from eloquio.models.entry import (
    AdapterFolder,
    Files,
    ModelEntry,
    SafetensorsFolder,
    UnusableFolder,
)
from eloquio.models.file_cache import FileCache, size_and_time
from eloquio.models.folders import FolderContent
from eloquio.models.identify_config import identify, is_known, task_of
from eloquio.models.json_file import Table, read_table
from eloquio.models.model_config import ModelConfig, model_config
from eloquio.models.naming import Ids, Place, folder_name
from eloquio.models.safetensors_header import Weights, read_weights
from eloquio.models.weight_files import (
    INDEX,
    WeightFiles,
    adapter_weights,
    has_weights,
    model_weights,
)

_CONFIG, _ADAPTER_CONFIG = "config.json", "adapter_config.json"
# What belongs to the folder's own model lies in the folders below it.
_WHOLES = ("model_index.json", "modules.json")


class Adapter(NamedTuple):
    """One that has no base yet: that is looked for once all other models are known."""

    place: Place
    content: FolderContent
    config: AdapterConfig
    weights: Weights
    is_pickle: bool


class FolderEntries:
    """Small files and the headers of weights are read again only when they changed."""

    def __init__(self) -> None:
        self._tables: FileCache[Table] = FileCache(read_table)
        self._weights: FileCache[Weights] = FileCache(read_weights)

    def of(self, place: Place, ids: Ids, seen: set[str]) -> Iterable[ModelEntry | Adapter]:
        """Those that no earlier place had; `seen` gets the real path of what was looked at."""
        by_path = {content.path: content for content in place.contents}
        for content in _models(place.contents):
            real = os.path.realpath(content.path)
            if real in seen:
                continue
            seen.add(real)
            yield self.of_folder(place, content, ids, by_path, seen)

    def of_folder(
        self,
        place: Place,
        content: FolderContent,
        ids: Ids,
        by_path: Mapping[Path, FolderContent],
        seen: set[str],
    ) -> ModelEntry | Adapter:
        """`by_path`: the contents of the folders around it."""
        name = shown_name(content.path.name)
        try:
            if _is_adapter(content):
                config = adapter_config(self._table(content, _ADAPTER_CONFIG, seen), name)
                files = adapter_weights(content)
                return Adapter(place, content, config, self._sum(files, seen), files.is_pickle)
            model = self._model(content, by_path, seen, name)
            return entry_of(place, content, ids, model, model.weights, task_of(model.kind))
        except EloquioError as problem:
            found = problem.with_traceback(None)
            unusable = UnusableFolder(is_adapter=_is_adapter(content))
            return entry_of(place, content, ids, unusable, Weights(), "chat", found)

    def forget_all_but(self, files: set[str]) -> None:
        self._tables.forget_all_but(files)
        self._weights.forget_all_but(files)

    def _model(
        self,
        content: FolderContent,
        by_path: Mapping[Path, FolderContent],
        seen: set[str],
        name: str,
    ) -> SafetensorsFolder:
        inner = self._transformer(content, by_path, seen)
        config = self._config(inner, content, seen)
        kind = identify(config, content.names, name)
        index = self._table(inner, INDEX, seen) if INDEX in inner.names else None
        files = model_weights(inner, index)
        return SafetensorsFolder(
            config=config,
            weights=self._sum(files, seen),
            kind=kind,
            is_pickle=files.is_pickle,
            needs_code=bool(config.classes_of_its_own) and not is_known(config),
        )

    def _config(self, inner: FolderContent, content: FolderContent, seen: set[str]) -> ModelConfig:
        if _CONFIG not in inner.names and "model_index.json" in content.names:
            return model_config({})
        return model_config(self._table(inner, _CONFIG, seen))

    def _transformer(
        self, content: FolderContent, by_path: Mapping[Path, FolderContent], seen: set[str]
    ) -> FolderContent:
        """Where config.json lies: in a folder below, of some models made for embeddings."""
        if _CONFIG in content.names or "modules.json" not in content.names:
            return content
        for inner in by_path.values():
            is_below = inner.path.parent == content.path
            if is_below and _CONFIG in inner.names and has_weights(inner):
                return inner
        return content

    def _table(self, content: FolderContent, name: str, seen: set[str]) -> Table:
        path = content.path / name
        seen.add(os.path.realpath(path))
        found = self._tables.read(path)
        if isinstance(found, EloquioError):
            raise found
        return found

    def _sum(self, files: WeightFiles, seen: set[str]) -> Weights:
        if files.is_pickle:
            # Nothing is told by a pickle that isn't run.
            return Weights(size_bytes=sum(size_and_time(path)[0] for path in files.paths))
        parts = []
        for path in files.paths:
            seen.add(os.path.realpath(path))
            part = self._weights.read(path)
            if isinstance(part, EloquioError):
                raise part
            parts.append(part)
        return Weights.sum(parts)


def entry_of(
    place: Place,
    content: FolderContent,
    ids: Ids,
    files: Files,
    weights: Weights,
    task: Task,
    problem: EloquioError | None = None,
) -> ModelEntry:
    name = folder_name(place, content.path)
    base_bytes = files.base.weights_bytes if isinstance(files, AdapterFolder) else 0
    stamps = [size_and_time(file) for file in content.files]
    return ModelEntry(
        id=ids.unused(name.ids),
        display_name=name.display_name,
        source=place.source,
        path=content.path,
        files=files,
        size_bytes=sum(size for size, _ in stamps),
        weights_bytes=weights.size_bytes + base_bytes,
        problem=problem,
        task=task,
        created=max((time for _, time in stamps), default=0) // 1_000_000_000,
        repository=name.repository,
    )


def is_model(content: FolderContent) -> bool:
    names = content.names
    if any(name in names for name in (*_WHOLES, _ADAPTER_CONFIG)):
        return True
    return _CONFIG in names and has_weights(content)


def _models(contents: Sequence[FolderContent]) -> Iterable[FolderContent]:
    wholes = {c.path for c in contents if any(name in c.names for name in _WHOLES)}
    for content in contents:
        if is_model(content) and wholes.isdisjoint(content.path.parents):
            yield content


def _is_adapter(content: FolderContent) -> bool:
    return _ADAPTER_CONFIG in content.names and _CONFIG not in content.names
