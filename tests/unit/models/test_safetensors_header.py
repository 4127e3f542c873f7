"""What a safetensors file's header tells, and what is said of files that aren't whole."""

import json
import os

import pytest

from eloquio.errors import (
    ModelFileMissing,
    SafetensorsInvalid,
    SafetensorsTruncated,
)
from eloquio.models.safetensors_header import Weights, read_weights
from fixtures.safetensors_files import write_raw, write_safetensors


def tensor(**changes):
    described = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    return json.dumps({"a": described | changes}).encode()


def test_bytes_and_parameters_are_counted_by_type(tmp_path):
    path = write_safetensors(tmp_path / "a.safetensors", dtype="BF16")

    weights = read_weights(path)

    assert weights.parameters == 32 * 64 + 64 * 64 + 64
    assert weights.size_bytes == 2 * weights.parameters
    assert weights.dtype == "BF16"
    # Neither the embeddings nor a norm are made of 4 bits.
    assert weights.matrix_parameters == 64 * 64


def test_several_files_are_one_sum(tmp_path):
    small = read_weights(write_safetensors(tmp_path / "a", {"x": (4,)}, "F32"))
    large = read_weights(write_safetensors(tmp_path / "b", {"y": (9, 9)}, "F16"))

    both = Weights.sum([small, large])

    assert (both.size_bytes, both.parameters, both.dtype) == (16 + 162, 85, "F16")
    assert Weights.sum([]).dtype is None


def test_values_of_less_than_a_byte_fill_whole_ones(tmp_path):
    header = tensor(dtype="F4", shape=[2, 16])
    assert read_weights(write_raw(tmp_path / "a", header, 16)).parameters == 32


@pytest.mark.parametrize("kept", [0, 7, 9, 60, -1])
def test_a_file_that_was_cut_is_said_to_be(tmp_path, kept):
    path = write_safetensors(tmp_path / "model.safetensors")
    size = path.stat().st_size
    os.truncate(path, kept if kept >= 0 else size + kept)

    with pytest.raises(SafetensorsTruncated, match=r"^model\.safetensors was cut"):
        read_weights(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"<!DOCTYPE html><html><body>Not found</body></html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "a Git LFS pointer"),
        (b"PK\x03\x04" + bytes(60), "a zip archive or a PyTorch checkpoint"),
        (bytes(100), "a download that has only begun"),
    ],
)
def test_another_kind_of_file_is_called_by_its_name(tmp_path, content, what):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)

    with pytest.raises(SafetensorsInvalid, match=rf"model\.safetensors is not .*{what}"):
        read_weights(path)


@pytest.mark.parametrize(
    ("header", "data_bytes", "length"),
    [
        (b"{}", 0, 1 << 40),
        (b'{"a": ', 0, None),
        (b'{"a": 1}', 0, None),
        (tensor(shape=[2, 3]), 16, None),
        (tensor(shape=[-2, -2]), 16, None),
        (tensor(shape=[True, 4]), 16, None),
        (tensor(shape=[1 << 63, 1 << 63]), 16, None),
        (tensor(dtype="F31"), 16, None),
        (tensor(data_offsets=[16, 0]), 16, None),
        (tensor(data_offsets=[-16, 0]), 16, None),
        (tensor(data_offsets=[8, 24]), 24, None),
        (tensor(), 17, None),
        (b"{" * 100_000, 0, None),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(tmp_path, header, data_bytes, length):
    path = write_raw(tmp_path / "model.safetensors", header, data_bytes, length)

    with pytest.raises(SafetensorsInvalid, match=r"^model\.safetensors is not a valid"):
        read_weights(path)


def test_what_is_no_file_is_told_so_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.safetensors")
    with pytest.raises(SafetensorsInvalid, match="not a regular file"):
        read_weights(tmp_path / "pipe.safetensors")
    with pytest.raises(ModelFileMissing, match=r"no file gone\.safetensors"):
        read_weights(tmp_path / "gone.safetensors")
