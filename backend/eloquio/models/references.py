"""What a person may write to name a model, and which of the models on disk it means."""

import copy
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eloquio.errors import (
    EloquioError,
    FolderWithoutModels,
    InvalidRequest,
    ModelAmbiguous,
    ModelFileMissing,
    ModelKindUnsupported,
    ModelNotDownloaded,
    ModelNotFound,
    PathNotAllowed,
)
from eloquio.models.byte_source import printable, shown_name
from eloquio.models.folders import AllowedFolders, is_under
from eloquio.models.names import is_repository

if TYPE_CHECKING:
    from eloquio.models.entry import ModelEntry

_OTHER_SYSTEMS_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\|//")


def refuse_unprintable(model_path: str, variant: str | None) -> None:
    for param, text in (("model_path", model_path), ("gguf_variant", variant or "")):
        if printable(text) != text:
            raise InvalidRequest(f"{param} holds characters that no name has.", param=param)
    if not model_path.strip():
        raise InvalidRequest("model_path is empty.", param="model_path")


def by_id(
    entries: Sequence["ModelEntry"], model_path: str, variant: str | None
) -> "ModelEntry | None":
    """The model with this id, or of this repository; None when neither is here."""
    name, _, quant = model_path.partition(":")
    if is_repository(name) and quant and variant and quant.casefold() != variant.casefold():
        raise InvalidRequest(
            f"model_path asks for {shown_name(quant)}, gguf_variant for {shown_name(variant)}.",
            param="gguf_variant",
        )
    same_repository = [
        entry
        for entry in entries
        if entry.repository is not None and entry.repository.casefold() == name.casefold()
    ]
    exact = [entry for entry in entries if entry.id == model_path] or [
        entry for entry in entries if entry.id.casefold() == model_path.casefold()
    ]
    if exact and not (variant and same_repository):
        return _of_variant(exact, model_path, variant)
    return _of_variant(same_repository, name, quant or variant) if same_repository else None


def allowed_path(model_path: str, allowed: AllowedFolders, param: str | None = None) -> Path | None:
    """The path it names, or None when it has the form of a name and no such file is there.

    A path outside is refused before anything at it is looked at, so that the answer doesn't tell
    whether it exists. `param` is the field that names it.
    """
    if _OTHER_SYSTEMS_PATH.match(model_path) and not _is_local_absolute(model_path):
        raise _outside(param)
    path = Path(os.path.expanduser(model_path))  # noqa: PTH111 - Path's own raises on odd users
    if path.is_absolute():
        if not allowed.contain(path):
            raise _outside(param)
        if not _exists(path):
            raise ModelFileMissing(
                f"There is nothing called {shown_name(path.name)} in that folder.",
                param=param,
            )
        return path
    inside = [folder / path for folder in allowed.folders if allowed.contain(folder / path)]
    if not inside:
        raise _outside(param)
    there = next((candidate for candidate in inside if _exists(candidate)), None)
    if there is None and (path.suffix.lower() == ".gguf" or ".." in path.parts):
        raise ModelFileMissing(
            f"There is no file {shown_name(path.name)} in the model folders.", param=param
        )
    return there


def at_path(
    entries: Sequence["ModelEntry"], path: Path, variant: str | None
) -> "ModelEntry | None":
    """The listed model whose file this is, or the only one in this folder."""
    real = os.path.realpath(path)
    if path.is_dir():
        # Of the file's folder, not of the file: in a hub cache that is a link to elsewhere.
        inside = [entry for entry in entries if is_under(os.path.realpath(entry.folder), real)]
        # A folder that is a model is meant itself, whatever else lies below it.
        here = [entry for entry in inside if os.path.realpath(entry.folder) == real]
        is_model = any(entry.path.is_dir() for entry in here)
        found = here if is_model else inside
        return _of_variant(found, shown_name(path.name), variant) if found else None
    for entry in entries:
        if any(os.path.realpath(part) == real for part in entry.paths):
            return _of_variant([entry], shown_name(path.name), variant)
    if path.suffix.lower() in (".safetensors", ".json"):
        # A part of a folder that is a model names the whole.
        folder = os.path.realpath(path.parent)
        return next((e for e in entries if os.path.realpath(e.path) == folder), None)
    return None


def not_here(
    entries: Sequence["ModelEntry"], model_path: str, variant: str | None
) -> ModelNotFound:
    name, _, quant = model_path.partition(":")
    if name.casefold().startswith("builtin/"):
        return ModelNotFound(
            f"There is no built-in model {shown_name(model_path)}.",
            param="model_path",
            next_step="Run scripts/start, which brings them; GET /v1/models lists what is here.",
        )
    if is_repository(name):
        wanted = f"{name}:{quant or variant}" if quant or variant else name
        return ModelNotDownloaded(
            f"Nothing of {shown_name(wanted)} is on this machine.", param="model_path"
        )
    return ModelNotFound(f"There is no model {shown_name(model_path)}.", param="model_path")


def fresh(problem: EloquioError) -> EloquioError:
    """A copy to raise: the entry's own would gather a traceback from every request."""
    return copy.copy(problem).with_traceback(None)


def _of_variant(candidates: Sequence["ModelEntry"], name: str, variant: str | None) -> "ModelEntry":
    """The one of them that is the asked variant; `UD-Q4_K_XL` is also found as `Q4_K_XL`."""
    # An importance matrix or an adapter beside a model doesn't make it ambiguous; a broken model
    # does: another quant must not silently take its place.
    models = [entry for entry in candidates if not isinstance(entry.problem, ModelKindUnsupported)]
    chosen = models or list(candidates)
    if variant:
        wanted = variant.casefold()
        chosen = [entry for entry in candidates if wanted in _variants(entry)] or [
            entry for entry in candidates if (entry.variant or "").casefold().endswith("-" + wanted)
        ]
    if len(chosen) == 1:
        return chosen[0]
    here = ", ".join(entry.id for entry in (chosen or candidates)[:20])
    if chosen:
        raise ModelAmbiguous(
            f"{shown_name(name)} may mean several models: {here}.",
            param="gguf_variant",
        )
    raise ModelNotDownloaded(
        f"{shown_name(name)} is not here as {shown_name(variant or '')}; here are: {here}.",
        param="gguf_variant",
    )


def _variants(entry: "ModelEntry") -> set[str]:
    of_id = entry.id.rpartition(":")[2] if entry.repository else ""
    return {(entry.variant or "").casefold(), of_id.casefold()} - {""}


def _is_local_absolute(text: str) -> bool:
    return os.name == "nt" and text[1:2] == ":"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long for the file system
        return False


def _outside(param: str | None) -> PathNotAllowed:
    return PathNotAllowed(
        "That path lies outside the folders models may be loaded from.", param=param
    )


def without_models(folder: Path) -> FolderWithoutModels:
    name = shown_name(folder.name)
    try:
        has_weights = any(file.suffix.lower() == ".safetensors" for file in folder.iterdir())
    except OSError:
        has_weights = False
    if has_weights:
        return FolderWithoutModels(
            f"The folder {name} has safetensors, but no config.json that says what they are.",
            param="model_path",
            next_step="Download config.json and the tokenizer's files into the same folder.",
        )
    return FolderWithoutModels(f"There is no model in the folder {name}.", param="model_path")
