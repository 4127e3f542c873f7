"""Which files of a folder hold a model's weights, and whether all of them are there."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eloquio.errors import ModelConfigInvalid, SafetensorsShardMissing
from eloquio.models.byte_source import shown_name
from eloquio.models.folders import FolderContent
from eloquio.models.json_file import Table, table

INDEX = "model.safetensors.index.json"
WHOLE = "model.safetensors"
ADAPTER = "adapter_model.safetensors"
_PART = re.compile(r"-\d{5}-of-\d{5}\.safetensors$")
_PICKLES = re.compile(r"(?:pytorch_model|adapter_model)(?:-\d{5}-of-\d{5})?\.bin$")
_MOST_NAMED = 8


@dataclass(frozen=True)
class WeightFiles:
    paths: tuple[Path, ...]
    is_pickle: bool = False


def has_weights(content: FolderContent) -> bool:
    """Whether it looks like a model's: a whole one, or what is left of one."""
    return any(
        name == INDEX or name.endswith(".safetensors") or _PICKLES.match(name)
        for name in content.names
    )


def adapter_weights(content: FolderContent) -> WeightFiles:
    """Those of a LoRA adapter; SafetensorsShardMissing where there are none."""
    if ADAPTER in content.names:
        return WeightFiles((content.path / ADAPTER,))
    pickles = _pickles(content)
    if pickles:
        return WeightFiles(pickles, is_pickle=True)
    raise SafetensorsShardMissing(
        f"The adapter {shown_name(content.path.name)} has no {ADAPTER}.",
        next_step="Download it into the same folder.",
    )


def model_weights(content: FolderContent, index: Table | None) -> WeightFiles:
    """Those that transformers would read. `index`: what the folder's index file holds.

    SafetensorsShardMissing names what isn't there.
    """
    if WHOLE in content.names:
        return WeightFiles((content.path / WHOLE,))
    if index is not None:
        return WeightFiles(_of_index(content, index))
    name = shown_name(content.path.name)
    others = sorted(
        file.name
        for file in content.files
        if file.suffix == ".safetensors" and file.name != ADAPTER
    )
    if any(_PART.search(other) for other in others):
        raise SafetensorsShardMissing(
            f"Of {name}, {INDEX} is missing, which says what lies in which part.",
            next_step="Download it into the same folder.",
        )
    if pickles := _pickles(content):
        return WeightFiles(pickles, is_pickle=True)
    if others:
        raise SafetensorsShardMissing(
            f"{name} has no {WHOLE}: its weights are called {_listed(others)}",
            next_step=f"Rename them to {WHOLE} if they are the model's.",
        )
    raise SafetensorsShardMissing(f"{name} has no weights.", next_step="Download them.")


def _of_index(content: FolderContent, index: Table) -> tuple[Path, ...]:
    told = list(table(index.get("weight_map")).values())
    named = sorted({name for name in told if isinstance(name, str) and Path(name).name == name})
    if not named or not named == sorted(set(map(str, told))):
        raise ModelConfigInvalid(
            f"{INDEX} of {shown_name(content.path.name)} names no files of this folder."
        )
    missing = [name for name in named if name not in content.names]
    if missing:
        raise SafetensorsShardMissing(
            f"Of {shown_name(content.path.name)}, {len(missing)} of {len(named)} parts are "
            f"missing: {_listed(missing)}"
        )
    return tuple(content.path / name for name in named)


def _pickles(content: FolderContent) -> tuple[Path, ...]:
    return tuple(file for file in content.files if _PICKLES.match(file.name))


def _listed(names: Iterable[str]) -> str:
    shown: Sequence[str] = [shown_name(name) for name in names]
    return f"{', '.join(shown[:_MOST_NAMED])}{'…' if len(shown) > _MOST_NAMED else '.'}"
