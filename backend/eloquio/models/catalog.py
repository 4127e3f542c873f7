"""What is on disk: built-in models, the person's folders, the local Hugging Face cache."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from eloquio.errors import EloquioError
from eloquio.models import references
from eloquio.models.adapter_bases import base_of
from eloquio.models.entry import AdapterFolder, ModelEntry, UnusableFolder
from eloquio.models.folder_entries import Adapter, FolderEntries, entry_of, is_model
from eloquio.models.folders import AllowedFolders, content_of, contents, hub_repositories
from eloquio.models.gguf_entries import GgufEntries
from eloquio.models.naming import Ids, Place
from eloquio.models.safetensors_header import Weights
from eloquio.settings import Settings


class Catalog:
    """The list of models, read anew at each look; headers are read again only when a file changed.

    `folders` gives the folders the person allowed, at the moment they are asked for.
    """

    def __init__(self, settings: Settings, folders: Callable[[], Sequence[Path]]) -> None:
        self._settings = settings
        self._folders = folders
        self._gguf = GgufEntries()
        self._whole_folders = FolderEntries()

    def scan(self) -> list[ModelEntry]:
        """Every model on disk, the built-in ones first and adapters last.

        Reads the disk: call it in a thread.
        """
        allowed = self.allowed_folders()
        entries: list[ModelEntry] = []
        adapters: list[Adapter] = []
        ids, seen = Ids(), set[str]()
        for place in self._places(allowed):
            entries.extend(self._gguf.of(place, ids, seen))
            for found in self._whole_folders.of(place, ids, seen):
                if isinstance(found, Adapter):
                    adapters.append(found)
                else:
                    entries.append(found)
        models = list(entries)
        entries += [_on_its_base(adapter, models, allowed, ids) for adapter in adapters]
        self._gguf.forget_all_but(seen)
        self._whole_folders.forget_all_but(seen)
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
            allowed = self.allowed_folders()
            path = references.allowed_path(model_path, allowed, "model_path")
            if path is None:
                raise references.not_here(entries, model_path, variant)
            entry = references.at_path(entries, path, variant) or self._unlisted(
                path, entries, allowed
            )
        if entry.problem is not None:
            raise references.fresh(entry.problem)
        return entry

    def allowed_folders(self) -> AllowedFolders:
        settings = self._settings
        return AllowedFolders([settings.models_dir, *self._folders(), settings.hub_cache])

    def _places(self, allowed: AllowedFolders) -> Iterable[Place]:
        builtin = self._settings.models_dir / "builtin"
        # Directly in it only: an id is `builtin/` and the file's name.
        yield Place("builtin", builtin, None, [content_of(builtin, allowed)])
        for folder in allowed.folders:
            for repository in hub_repositories(folder):
                found = contents(repository.snapshot, allowed)
                yield Place("hub_cache", repository.snapshot, repository.name, found)
        for folder in allowed.folders:
            if folder != self._settings.hub_cache:
                yield Place("folder", folder, None, contents(folder, allowed))

    def _unlisted(
        self, path: Path, entries: Sequence[ModelEntry], allowed: AllowedFolders
    ) -> ModelEntry:
        """The entry of what a scan passes by: hidden, too deep, or a file without `.gguf`."""
        ids = Ids([entry.id for entry in entries])
        if not path.is_dir():
            return self._gguf.of_file(path, ids)
        content = content_of(path, allowed)
        if not is_model(content):
            raise references.without_models(path)
        around = contents(path, allowed)
        place = Place("folder", path.parent, None, around)
        by_path = {inner.path: inner for inner in around}
        found = self._whole_folders.of_folder(place, content, ids, by_path, set())
        if isinstance(found, Adapter):
            return _on_its_base(found, entries, allowed, ids)
        return found


def _on_its_base(
    adapter: Adapter, entries: Sequence[ModelEntry], allowed: AllowedFolders, ids: Ids
) -> ModelEntry:
    place, content, config, weights, is_pickle = adapter
    try:
        base = base_of(config.base, content.path, entries, allowed)
    except EloquioError as problem:
        unusable = UnusableFolder(is_adapter=True)
        found = problem.with_traceback(None)
        return entry_of(place, content, ids, unusable, Weights(), "chat", found)
    files = AdapterFolder(config, weights, base, is_pickle)
    return entry_of(place, content, ids, files, weights, base.task)
