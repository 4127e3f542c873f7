"""A reader of GGUF headers that keeps what a decision needs and hops over the rest.

Layout (little-endian, versions 2 and 3): magic, version, tensor count, metadata count, metadata,
tensor table, and from the next multiple of `general.alignment` on the tensors' bytes.
A header is a stranger's text: every count is capped and measured against the bytes that are left.
"""

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from eloquio.errors import (
    ModelFileMissing,
    ModelFileUnreadable,
    NotAModelFile,
)
from eloquio.models.byte_source import LENGTH, MAX_STRING_BYTES, ByteSource, looks_like, shown_name
from eloquio.models.ggml_types import FILE_TYPES, TENSOR_TYPES

MAGIC = b"GGUF"
_MAX_METADATA = 65_536
_MAX_TENSORS = 65_536
_MAX_KEPT_STRING_BYTES = 1 << 20
_MAX_KEPT_ELEMENTS = 1024
_MAX_ARRAY_LENGTH = 1 << 28
_MAX_ARRAY_DEPTH = 4

_U32 = Struct("<I")
_STRING, _ARRAY, _BOOL = 8, 9, 7
_SCALARS = {
    number: Struct("<" + code)
    for number, code in {
        0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"
    }.items()
}  # fmt: skip
_INTEGERS = {0, 1, 2, 3, 4, 5, 7, 10, 11}
_TYPE_NAMES = (
    "uint8", "int8", "uint16", "int16", "uint32", "int32",
    "float32", "bool", "string", "array", "uint64", "int64", "float64",
)  # fmt: skip


class SkippedArray(NamedTuple):
    """An array of the metadata that was hopped over."""

    element_type: str
    length: int


class SkippedString(NamedTuple):
    """A string of more than a mebibyte, such as a whole tokenizer as JSON."""

    length: int


Value = str | int | float | bool | tuple[int, ...] | SkippedArray | SkippedString


class Tensor(NamedTuple):
    """One row of the tensor table; `offset` counts from the start of the data."""

    name: str
    dims: tuple[int, ...]
    type_name: str
    offset: int
    size_bytes: int


@dataclass(frozen=True)
class GgufHeader:
    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    weights_bytes: int
    expected_file_bytes: int
    """Where the last tensor ends: a shorter file was cut."""

    @property
    def architecture(self) -> str:
        return self.text("general.architecture") or ""

    @property
    def name(self) -> str | None:
        return self.text("general.name")

    @property
    def type(self) -> str | None:
        """ "model", "adapter", "mmproj", "imatrix"…; many older files don't say."""
        return self.text("general.type")

    @property
    def quant(self) -> str | None:
        """The name of `general.file_type`, such as Q4_K_M."""
        file_type = self.integer("general.file_type")
        # 1024 only marks that the type was guessed.
        return None if file_type is None else FILE_TYPES.get(file_type & ~1024)

    @property
    def split_count(self) -> int:
        return self.integer("split.count") or 1

    @property
    def context_length(self) -> int | None:
        return self.integer(self.key("context_length"))

    @property
    def block_count(self) -> int | None:
        return self.integer(self.key("block_count"))

    @property
    def embedding_length(self) -> int | None:
        return self.integer(self.key("embedding_length"))

    @property
    def vocabulary_length(self) -> int | None:
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        if isinstance(tokens, SkippedArray):
            return tokens.length
        return self.integer(self.key("vocab_size"))

    def key(self, name: str) -> str:
        """The full name of a key that stands under the architecture's own."""
        return f"{self.architecture}.{name}"

    def text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def integer(self, key: str) -> int | None:
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def number(self, key: str) -> float | None:
        value = self.metadata.get(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number else None  # type: ignore[arg-type]

    def integers(self, key: str) -> tuple[int, ...] | None:
        """A short array of whole numbers or booleans; a single number is an array of one."""
        value = self.metadata.get(key)
        if isinstance(value, tuple) and not isinstance(value, SkippedArray | SkippedString):
            return value
        return (value,) if isinstance(value, int) else None


def read_header(path: Path) -> GgufHeader:
    """Read the header of one GGUF file; a few milliseconds, about 60 for a vocabulary of 152 000.

    Raises ModelFileMissing, ModelFileUnreadable, NotAModelFile, ModelFileTruncated or
    ModelFileInvalid; their texts name the file without its folder.
    """
    with opened(path) as source:
        return _parse(source)


@contextmanager
def opened(path: Path) -> Iterator[ByteSource]:
    """The file from its start on; what goes wrong with it while it is open is told by its name."""
    name = shown_name(path.name)
    try:
        # Asked first: opening a pipe would wait for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise NotAModelFile(f"{name} is not a regular file.")
        with path.open("rb", buffering=0) as file:
            yield ByteSource(file, os.fstat(file.fileno()).st_size, name)
    except FileNotFoundError as error:
        raise ModelFileMissing(f"There is no file {name}.") from error
    except OSError as error:
        reason = error.strerror or "read error"
        raise ModelFileUnreadable(f"{name} can't be read: {reason}.") from error


def find_arrays(source: ByteSource, keys: Collection[str]) -> dict[str, int]:
    """Where the arrays of the metadata among `keys` begin, with their element type and length."""
    _check_magic(source)
    _check_version(source)
    source.number(LENGTH)
    found: dict[str, int] = {}
    for _ in range(_count(source, "metadata entries", _MAX_METADATA, smallest_bytes=13)):
        key = source.short_string()
        kind = source.number(_U32)
        if kind == _ARRAY and key in keys:
            found[key] = source.position
            if len(found) == len(keys):
                break
        _value(source, kind)
    return found


def read_strings(source: ByteSource, position: int) -> Iterator[bytes]:
    """The array of strings that begins there; of another type, none."""
    source.go_to(position)
    kind, length = source.number(_U32), source.number(LENGTH)
    return source.strings(length) if kind == _STRING else iter(())


def read_integers(source: ByteSource, position: int) -> Sequence[int]:
    """The array of numbers that begins there, however long; of another type, none."""
    source.go_to(position)
    kind, length = source.number(_U32), source.number(LENGTH)
    if kind not in _INTEGERS:
        return ()
    form = _SCALARS[kind]
    if source.position + length * form.size > source.size:
        source.truncated(source.position + length * form.size)
    source.spend(length)
    return [value for (value,) in form.iter_unpack(source.take(length * form.size))]


def _parse(source: ByteSource) -> GgufHeader:
    _check_magic(source)
    _check_version(source)
    tensor_count = _count(source, "tensors", _MAX_TENSORS, smallest_bytes=24)
    metadata_count = _count(source, "metadata entries", _MAX_METADATA, smallest_bytes=13)
    metadata: dict[str, Value] = {}
    for _ in range(metadata_count):
        key = source.short_string()
        if key in metadata:
            source.invalid(f"the key {shown_name(key)} stands in it twice")
        metadata[key] = _value(source, source.number(_U32))
    tensors = tuple(_tensor(source) for _ in range(tensor_count))
    end = source.position
    if tensors:
        end = _end_of_data(source, _alignment(source, metadata), tensors)
        if end > source.size:
            source.truncated(end)
    return GgufHeader(
        metadata=metadata,
        tensors=tensors,
        weights_bytes=sum(tensor.size_bytes for tensor in tensors),
        expected_file_bytes=end,
    )


def _check_magic(source: ByteSource) -> None:
    start = source.take(min(source.size, 512))
    if not start:
        raise NotAModelFile(f"{source.name} is an empty file.")
    if start.startswith(MAGIC):
        source.position = len(MAGIC)
    elif MAGIC.startswith(start):
        source.truncated(24)
    else:
        raise NotAModelFile(f"{source.name} is not a GGUF file: it looks like {looks_like(start)}.")


def _check_version(source: ByteSource) -> None:
    version = source.number(_U32)
    if version and version & 0xFFFF == 0:
        source.invalid("it is big-endian, and only little-endian files can be run here")
    if version < 2:
        source.invalid(f"its format version {version} is too old; convert it anew")
    if version > 3:
        source.invalid(f"its format version {version} is newer than version 3")


def _count(source: ByteSource, what: str, most: int, smallest_bytes: int) -> int:
    count = source.number(LENGTH)
    if count > most:
        source.invalid(f"it claims {count} {what}")
    if source.position + count * smallest_bytes > source.size:
        source.truncated(source.position + count * smallest_bytes)
    return count


def _value(source: ByteSource, kind: int) -> Value:
    if kind == _STRING:
        return _string(source)
    if kind == _ARRAY:
        return _array(source, depth=1)
    form = _SCALARS.get(kind)
    if form is None:
        source.invalid(f"{kind} is no type of metadata")
    value: int | float | bool = form.unpack(source.take(form.size))[0]
    return value


def _string(source: ByteSource) -> str | SkippedString:
    length = source.number(LENGTH)
    if length > MAX_STRING_BYTES:
        source.invalid(f"a string of {length} bytes stands in its header")
    if length > _MAX_KEPT_STRING_BYTES:
        source.skip(length)
        return SkippedString(length)
    source.spend(1 + length // 16)
    return source.take(length).decode("utf-8", "replace")


def _array(source: ByteSource, depth: int) -> tuple[int, ...] | SkippedArray:
    if depth > _MAX_ARRAY_DEPTH:
        source.invalid("its arrays are nested too deeply")
    kind = source.number(_U32)
    length = source.number(LENGTH)
    if kind >= len(_TYPE_NAMES):
        source.invalid(f"{kind} is no type of metadata")
    if length > _MAX_ARRAY_LENGTH:
        source.invalid(f"it claims an array of {length} entries")
    if kind in _INTEGERS and length <= _MAX_KEPT_ELEMENTS:
        source.spend(1 + length)
        form = _SCALARS[kind]
        return tuple(value for (value,) in form.iter_unpack(source.take(length * form.size)))
    if kind == _STRING:
        source.skip_strings(length)
    elif kind == _ARRAY:
        source.spend(length)
        for _ in range(length):
            _array(source, depth + 1)
    else:
        source.skip(length * _SCALARS[kind].size)
    return SkippedArray(_TYPE_NAMES[kind], length)


def _tensor(source: ByteSource) -> Tensor:
    name = source.short_string()
    dimension_count = source.number(_U32)
    if dimension_count > 4:
        source.invalid(f"the tensor {shown_name(name)} has {dimension_count} dimensions")
    dims = tuple(source.number(LENGTH) for _ in range(dimension_count))
    type_number = source.number(_U32)
    offset = source.number(LENGTH)
    tensor_type = TENSOR_TYPES.get(type_number)
    if tensor_type is None:
        source.invalid(f"the tensor {shown_name(name)} has the unknown type {type_number}")
    elements = prod(dims)
    if elements >= 1 << 63 or offset >= 1 << 63:
        source.invalid(f"the tensor {shown_name(name)} is absurdly large")
    row_elements = dims[0] if dims else 1
    if row_elements % tensor_type.block_elements:
        source.invalid(f"the rows of the tensor {shown_name(name)} don't fill its blocks")
    size_bytes = elements // tensor_type.block_elements * tensor_type.block_bytes
    return Tensor(name, dims, tensor_type.name, offset, size_bytes)


def _alignment(source: ByteSource, metadata: Mapping[str, Value]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if (
        not isinstance(alignment, int)
        or isinstance(alignment, bool)
        or alignment < 1
        or alignment & (alignment - 1)
    ):
        source.invalid("its alignment is not a power of two")
    return alignment


def _end_of_data(source: ByteSource, alignment: int, tensors: Sequence[Tensor]) -> int:
    data_start = (source.position + alignment - 1) // alignment * alignment
    end = 0
    for tensor in sorted(tensors, key=lambda tensor: (tensor.offset, tensor.size_bytes)):
        if tensor.offset % alignment:
            source.invalid(f"the tensor {shown_name(tensor.name)} is not aligned")
        if tensor.offset < end:
            source.invalid(f"the tensor {shown_name(tensor.name)} overlaps another")
        end = tensor.offset + tensor.size_bytes
    if len({tensor.name for tensor in tensors}) != len(tensors):
        source.invalid("two of its tensors have the same name")
    return data_start + end
