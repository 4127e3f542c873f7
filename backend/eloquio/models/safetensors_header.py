"""The header of a safetensors file: how much it holds, of which types, and whether it is whole.

Layout: the header's length as 8 bytes (little-endian), the header as JSON (each tensor's dtype,
shape and where its bytes lie), then the tensors' bytes without a gap. A header is a stranger's
text: it is bounded and measured against the file before anything is believed.
"""

import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, NoReturn

from eloquio.errors import (
    ModelFileMissing,
    ModelFileUnreadable,
    SafetensorsInvalid,
    SafetensorsTruncated,
)
from eloquio.models.byte_source import LENGTH, looks_like, shown_name

# What the format's own library reads at most.
_MAX_HEADER_BYTES = 100_000_000
_DTYPE_BITS = {
    "F64": 64, "I64": 64, "U64": 64, "C64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16,
    "BF16": 16, "I16": 16, "U16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "I8": 8, "U8": 8, "BOOL": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
# The rows that are looked up, and those that make the scores of the vocabulary.
_KEPT_WHOLE = ("embed", "wte", "wpe", "lm_head", "shared")


@dataclass(frozen=True)
class Weights:
    """What one file holds, or several together."""

    size_bytes: int = 0
    """Of the tensors alone."""
    parameters: int = 0
    parameters_by_dtype: Mapping[str, int] = field(default_factory=dict)
    matrix_parameters: int = 0
    """Of those, the ones in matrices that 4-bit weights are made of."""

    @property
    def dtype(self) -> str | None:
        """That of most of the parameters, as safetensors calls it."""
        counts = self.parameters_by_dtype
        return max(counts, key=lambda name: counts[name], default=None)

    @classmethod
    def sum(cls, parts: Iterable["Weights"]) -> "Weights":
        parts = list(parts)
        by_dtype: Counter[str] = Counter()
        for part in parts:
            by_dtype.update(part.parameters_by_dtype)
        return cls(
            size_bytes=sum(part.size_bytes for part in parts),
            parameters=sum(part.parameters for part in parts),
            parameters_by_dtype=dict(by_dtype),
            matrix_parameters=sum(part.matrix_parameters for part in parts),
        )


def read_weights(path: Path) -> Weights:
    """What the file's header tells. Reads no tensor.

    Raises ModelFileMissing, ModelFileUnreadable, SafetensorsTruncated or SafetensorsInvalid; their
    texts name the file without its folder.
    """
    name = shown_name(path.name)
    try:
        # Asked first: opening a pipe would wait for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise SafetensorsInvalid(f"{name} is not a regular file.")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(512)
            length = _header_length(start, size, name)
            file.seek(LENGTH.size)
            header = _parsed(file.read(length), name)
    except FileNotFoundError as error:
        raise ModelFileMissing(f"There is no file {name}.") from error
    except OSError as error:
        reason = error.strerror or "read error"
        raise ModelFileUnreadable(f"{name} can't be read: {reason}.") from error
    return _weights(header, size - LENGTH.size - length, name)


def _header_length(start: bytes, size: int, name: str) -> int:
    if size < LENGTH.size + 2:
        raise SafetensorsTruncated(f"{name} was cut: it has {size} bytes, less than any header.")
    length = int(LENGTH.unpack_from(start)[0])
    begins_header = start[LENGTH.size : LENGTH.size + 1] == b"{"
    if not begins_header:
        raise SafetensorsInvalid(f"{name} is not a safetensors file: it is {looks_like(start)}.")
    if length > _MAX_HEADER_BYTES:
        _invalid(name, f"it claims a header of {length} bytes")
    if length > size - LENGTH.size:
        raise SafetensorsTruncated(
            f"{name} was cut: it has {size} bytes, but its header alone takes {length}."
        )
    return length


def _parsed(header: bytes, name: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(header)
    except (ValueError, RecursionError):
        _invalid(name, "its header isn't JSON")
    if not isinstance(parsed, dict):
        _invalid(name, "its header isn't a table of tensors")
    return parsed


def _weights(header: Mapping[str, Any], data_bytes: int, name: str) -> Weights:
    by_dtype: Counter[str] = Counter()
    matrix_parameters = end = held = 0
    for tensor, description in header.items():
        if tensor == "__metadata__":
            continue
        match description:
            case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(b), int(e)]}:
                count = _count(dtype, shape, e - b)
            case _:
                count = None
        if count is None or b < 0:
            _invalid(name, f"the tensor {shown_name(tensor)} makes no sense")
        end, held = max(end, e), held + e - b
        by_dtype[dtype] += count
        if len(shape) >= 2 and not any(word in tensor for word in _KEPT_WHOLE):
            matrix_parameters += count
    if end > data_bytes:
        raise SafetensorsTruncated(
            f"{name} was cut: {end - data_bytes} bytes of its tensors are missing."
        )
    if not end == held == data_bytes:
        _invalid(name, "its tensors and its bytes don't agree")
    return Weights(data_bytes, by_dtype.total(), dict(by_dtype), matrix_parameters)


def _count(dtype: str, shape: list[Any], size: int) -> int | None:
    """How many values a tensor of this shape has; None if its bytes don't fit to that."""
    if dtype not in _DTYPE_BITS or not all(type(n) is int and n >= 0 for n in shape):
        return None
    # A shape of a hundred factors may be a number that takes for ever to multiply.
    if len(shape) > 16 or any(n >= 1 << 62 for n in shape):
        return None
    count = prod(shape)
    return count if count * _DTYPE_BITS[dtype] == size * 8 else None


def _invalid(name: str, reason: str) -> NoReturn:
    raise SafetensorsInvalid(f"{name} is not a valid safetensors file: {reason}.")
