"""Reading GGUF headers: whatever the `gguf` package writes, whole, cut and damaged."""

import struct
import time
from contextlib import suppress
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eloquio.errors import (
    ModelFileInvalid,
    ModelFileTruncated,
    NotAModelFile,
)
from eloquio.models.gguf import SkippedArray, SkippedString, Value, read_header
from fixtures.gguf_files import cut, write_model

Type = gguf.GGUFValueType
TYPED_ERRORS = (ModelFileInvalid, ModelFileTruncated, NotAModelFile)
ANY_TEMPORARY_FOLDER = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def test_the_facts_of_a_model_are_read(tmp_path: Path) -> None:
    path = write_model(
        tmp_path / "model.gguf",
        name="A Model",
        file_type=15,
        metadata={"llama.attention.head_count_kv": [2, 0, 1], "split.count": 3},
    )

    header = read_header(path)

    assert header.architecture == "llama"
    assert header.name == "A Model"
    assert header.type == "model"
    assert header.quant == "Q4_K_M"
    assert header.context_length == 2048
    assert header.block_count == 2
    assert header.embedding_length == 64
    assert header.vocabulary_length == 8
    assert header.split_count == 3
    assert header.integers("llama.attention.head_count_kv") == (2, 0, 1)
    assert header.integers("llama.block_count") == (2,)
    assert header.weights_bytes == 2 * 4 * 32 * 4


def test_a_fact_of_the_wrong_type_counts_as_absent(tmp_path: Path) -> None:
    metadata = {"llama.context_length": "many", "general.name": 7, "general.file_type": True}

    header = read_header(write_model(tmp_path / "model.gguf", metadata=metadata))

    assert header.context_length is None
    assert header.name is None
    assert header.quant is None


def test_a_quant_that_was_guessed_is_still_named(tmp_path: Path) -> None:
    header = read_header(write_model(tmp_path / "model.gguf", file_type=1024 + 7))

    assert header.quant == "Q8_0"


def test_a_vocabulary_of_152_000_words_is_hopped_over_in_a_tenth_of_a_second(
    tmp_path: Path,
) -> None:
    tokens = [f"token-{number:06d}" for number in range(152_000)]
    merges = [f"tok en-{number:06d}" for number in range(151_000)]
    path = write_model(
        tmp_path / "model.gguf",
        metadata={
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.merges": merges,
            "tokenizer.ggml.token_type": [1] * 152_000,
        },
    )

    # The processor's time, and the best of five: others may be at work on this machine.
    best_seconds = min(_seconds_to_read(path) for _ in range(5))

    assert read_header(path).metadata["tokenizer.ggml.tokens"] == SkippedArray("string", 152_000)
    assert best_seconds < 0.1


def _seconds_to_read(path: Path) -> float:
    before = time.process_time()
    read_header(path)
    return time.process_time() - before


def test_a_string_of_more_than_a_mebibyte_is_not_kept(tmp_path: Path) -> None:
    metadata = {
        "tokenizer.huggingface.json": "x" * 1_048_577,
        "tokenizer.chat_template": "y" * 9999,
    }

    header = read_header(write_model(tmp_path / "model.gguf", metadata=metadata))

    assert header.metadata["tokenizer.huggingface.json"] == SkippedString(1_048_577)
    assert header.text("tokenizer.chat_template") == "y" * 9999


# What the `gguf` package writes, we read -------------------------------------------------------

_numbers: dict[Type, st.SearchStrategy[object]] = {
    Type.UINT8: st.integers(0, 2**8 - 1),
    Type.INT8: st.integers(-(2**7), 2**7 - 1),
    Type.UINT16: st.integers(0, 2**16 - 1),
    Type.INT16: st.integers(-(2**15), 2**15 - 1),
    Type.UINT32: st.integers(0, 2**32 - 1),
    Type.INT32: st.integers(-(2**31), 2**31 - 1),
    Type.UINT64: st.integers(0, 2**64 - 1),
    Type.INT64: st.integers(-(2**63), 2**63 - 1),
    Type.FLOAT32: st.floats(width=32, allow_nan=False),
    Type.FLOAT64: st.floats(allow_nan=False),
    Type.BOOL: st.booleans(),
}
_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
_scalars = st.one_of(
    *(st.tuples(st.just(kind), st.none(), values) for kind, values in _numbers.items()),
    st.tuples(st.just(Type.STRING), st.none(), _texts),
)
_arrays = st.one_of(
    *(
        st.tuples(st.just(Type.ARRAY), st.just(kind), st.lists(values, min_size=1, max_size=1100))
        for kind, values in (_numbers | {Type.STRING: _texts}).items()
    ),
    st.tuples(
        st.just(Type.ARRAY),
        st.none(),
        st.lists(st.lists(_texts, min_size=1, max_size=4), min_size=1, max_size=4),
    ),
)
_metadata = st.dictionaries(
    st.text("abcdefgh._", min_size=1, max_size=20).map("x.".__add__),
    st.one_of(_scalars, _arrays),
    max_size=12,
)
_BLOCKS = gguf.GGML_QUANT_SIZES
_tensors = st.lists(
    st.tuples(
        st.sampled_from(sorted(set(gguf.GGMLQuantizationType) & set(_BLOCKS))),
        st.lists(st.integers(1, 3), min_size=1, max_size=4),
    ),
    max_size=6,
)


def _write(
    path: Path,
    metadata: dict[str, tuple[Type, Type | None, object]],
    tensors: list[tuple[gguf.GGMLQuantizationType, list[int]]],
) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    for key, (kind, element, value) in metadata.items():
        writer.add_key_value(key, value, kind, element)
    for number, (kind, shape) in enumerate(tensors):
        data = np.zeros((*shape[:-1], shape[-1] * _BLOCKS[kind][1]), dtype=np.uint8)
        writer.add_tensor(f"tensor.{number}", data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _as_read(kind: Type, element: Type | None, value: object) -> Value:
    if kind is not Type.ARRAY:
        return value  # type: ignore[return-value]
    assert isinstance(value, list)
    if element is None:
        return SkippedArray("array", len(value))
    is_whole = element not in {Type.STRING, Type.FLOAT32, Type.FLOAT64}
    if is_whole and len(value) <= 1024:
        return tuple(value)
    return SkippedArray(element.name.lower(), len(value))


@given(metadata=_metadata, tensors=_tensors)
@ANY_TEMPORARY_FOLDER
def test_whatever_the_gguf_package_writes_is_read_back(
    tmp_path: Path,
    metadata: dict[str, tuple[Type, Type | None, object]],
    tensors: list[tuple[gguf.GGMLQuantizationType, list[int]]],
) -> None:
    path = _write(tmp_path / "model.gguf", metadata, tensors)

    header = read_header(path)

    expected = {key: _as_read(*entry) for key, entry in metadata.items()}
    assert header.metadata == {"general.architecture": "llama", **expected}
    peer = gguf.GGUFReader(path) if tensors else None
    assert [
        (tensor.name, tensor.type_name, tensor.dims, tensor.size_bytes) for tensor in header.tensors
    ] == [
        (tensor.name, tensor.tensor_type.name, tuple(tensor.shape.tolist()), tensor.n_bytes)
        for tensor in (peer.tensors if peer else [])
    ]
    # The writer pads each tensor, the last one too.
    assert 0 <= path.stat().st_size - header.expected_file_bytes < 32


@given(data=st.data(), metadata=_metadata, tensors=_tensors)
@ANY_TEMPORARY_FOLDER
def test_a_file_cut_anywhere_is_called_cut(
    tmp_path: Path,
    data: st.DataObject,
    metadata: dict[str, tuple[Type, Type | None, object]],
    tensors: list[tuple[gguf.GGMLQuantizationType, list[int]]],
) -> None:
    whole = _write(tmp_path / "whole.gguf", metadata, tensors)
    size = data.draw(st.integers(1, read_header(whole).expected_file_bytes - 1))

    with pytest.raises(ModelFileTruncated, match=f"has {size} bytes"):
        read_header(cut(whole, tmp_path / "cut.gguf", size))


@given(data=st.data(), metadata=_metadata, tensors=_tensors)
@ANY_TEMPORARY_FOLDER
def test_flipped_bytes_raise_nothing_but_our_own_errors(
    tmp_path: Path,
    data: st.DataObject,
    metadata: dict[str, tuple[Type, Type | None, object]],
    tensors: list[tuple[gguf.GGMLQuantizationType, list[int]]],
) -> None:
    path = _write(tmp_path / "model.gguf", metadata, tensors)
    content = bytearray(path.read_bytes())
    places = st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255))
    for place, byte in data.draw(st.lists(places, min_size=1, max_size=8)):
        content[place] = byte
    path.write_bytes(content)

    with suppress(*TYPED_ERRORS):
        read_header(path)


@given(tail=st.binary(max_size=400))
@ANY_TEMPORARY_FOLDER
def test_noise_behind_the_magic_raises_nothing_but_our_own_errors(
    tmp_path: Path, tail: bytes
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<I", 3) + tail)

    with suppress(*TYPED_ERRORS):
        read_header(path)
