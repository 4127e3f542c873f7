"""What a GGUF file's name says: the quant, the part of a split model, the model's own name."""

import re
from pathlib import Path
from typing import NamedTuple

_QUANT = re.compile(
    r"(?<![A-Za-z0-9])"
    r"((?:UD-)?(?:I?Q\d(?:_[A-Z0-9]+)+|TQ\d_\d|MXFP4(?:_MOE)?|NVFP4|BF16|FP?16|FP?32))"
    r"(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_SHARD = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})$")
_REPOSITORY = re.compile(r"[\w][\w.-]{0,95}/[\w][\w.-]{0,95}", re.ASCII)
_WORD = re.compile(r"[a-z0-9.]+")
_EMPTY_WORDS = {"mmproj", "model", "gguf"}
_PRECISIONS = ("F16", "BF16", "FP16", "F32", "FP32", "Q8_0")


class Shard(NamedTuple):
    """One part of a split model; `number` counts from 1."""

    stem: str
    number: int
    total: int

    def sibling_name(self, number: int) -> str:
        return f"{self.stem}-{number:05d}-of-{self.total:05d}.gguf"


def stem_of(path: Path) -> str:
    """The file's name without `.gguf` and without the number of its part."""
    shard = shard_of(path)
    if shard is not None:
        return shard.stem
    return path.stem if path.suffix.lower() == ".gguf" else path.name


def shard_of(path: Path) -> Shard | None:
    match = _SHARD.match(path.stem)
    if match is None:
        return None
    shard = Shard(match["stem"], int(match["number"]), int(match["total"]))
    # A first part out of thousands would only make a list of thousands of missing ones.
    return shard if 1 <= shard.number <= shard.total <= 1000 else None


def quant_in(text: str) -> str | None:
    """The last quant a name speaks of: `Q4_K_M`, `UD-Q4_K_XL`, `BF16`, `MXFP4`…"""
    found = _QUANT.findall(text)
    return found[-1].upper() if found else None


def without_quant(stem: str) -> str:
    return _QUANT.sub("", stem).strip("-._ ") or stem


def is_repository(text: str) -> bool:
    """Whether `text` has the form org/repo."""
    return _REPOSITORY.fullmatch(text) is not None and ".." not in text


def likeness(projector: Path, model: Path) -> float:
    """How much of the projector's name the model's name holds, from 0 to 1.

    A projector that is only called `mmproj-F16.gguf` is as like as any.
    """
    words = _words(projector)
    return len(words & _words(model)) / len(words) if words else 1.0


def precision_rank(projector: Path) -> int:
    """Lower is better: a projector is small, and pictures suffer from a coarse one."""
    quant = quant_in(stem_of(projector))
    return _PRECISIONS.index(quant) if quant in _PRECISIONS else len(_PRECISIONS)


def _words(path: Path) -> set[str]:
    return set(_WORD.findall(without_quant(stem_of(path)).lower())) - _EMPTY_WORDS
