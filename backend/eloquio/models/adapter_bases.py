"""Which of the models here an adapter was trained on."""

import os
from collections.abc import Sequence
from pathlib import Path

from eloquio.errors import AdapterBaseMissing, ModelNotDownloaded
from eloquio.models.byte_source import shown_name
from eloquio.models.entry import GgufFiles, ModelEntry, SafetensorsFolder
from eloquio.models.folders import AllowedFolders
from eloquio.models.names import is_repository


def base_of(
    told: str, adapter: Path, entries: Sequence[ModelEntry], allowed: AllowedFolders
) -> ModelEntry:
    """The model that `told`, the adapter's own word for its base, means.

    An id or a repository of the list, in any case; or a path, from the adapter's folder or a model
    folder on where it isn't absolute. ModelNotDownloaded for one of the Hub that isn't here,
    AdapterBaseMissing for everything else, both naming it.
    """
    name = shown_name(adapter.name)
    base = _by_name(told, entries) or _by_path(told, adapter, entries, allowed)
    if base is None:
        raise _missing(told, name, entries)
    if base.problem is not None:
        raise AdapterBaseMissing(
            f"{name} was trained on {base.id}, which can't be loaded: {base.problem.message}"
        )
    if not isinstance(base.files, SafetensorsFolder):
        raise AdapterBaseMissing(f"{name} was trained on {base.id}, which is no whole model.")
    return base


def _by_name(told: str, entries: Sequence[ModelEntry]) -> ModelEntry | None:
    name = told.strip().rstrip("/").casefold()
    folders = [entry for entry in entries if not isinstance(entry.files, GgufFiles)]
    return next((e for e in folders if e.id.casefold() == name), None) or next(
        (e for e in folders if (e.repository or "").casefold() == name), None
    )


def _by_path(
    told: str, adapter: Path, entries: Sequence[ModelEntry], allowed: AllowedFolders
) -> ModelEntry | None:
    path = Path(os.path.expanduser(told))  # noqa: PTH111 - Path's own raises on odd users
    starts = [adapter, *allowed.folders]
    places = [path] if path.is_absolute() else [start / path for start in starts]
    # By its real path alone: nothing outside the folders is looked at.
    reals = [os.path.realpath(place) for place in places if "\0" not in told]
    for entry in entries:
        if not isinstance(entry.files, GgufFiles) and os.path.realpath(entry.path) in reals:
            return entry
    return None


def _missing(
    told: str, adapter: str, entries: Sequence[ModelEntry]
) -> AdapterBaseMissing | ModelNotDownloaded:
    # Of a path of whoever trained it only the last part may be told.
    is_name = is_repository(told)
    base = shown_name(told if is_name else told.replace("\\", "/").rstrip("/").rpartition("/")[2])
    as_gguf = [e for e in entries if (e.repository or "").casefold() == told.casefold()]
    if is_name and as_gguf:
        return AdapterBaseMissing(
            f"{adapter} was trained on {base}, which is here only as GGUF.",
            next_step="Download it as safetensors too.",
        )
    if is_name:
        return ModelNotDownloaded(
            f"{adapter} was trained on {base}, which isn't on this machine.",
            next_step=f"Download {base} first.",
        )
    return AdapterBaseMissing(
        f"{adapter} was trained on a model in a folder {base}, which isn't among the models here."
    )
