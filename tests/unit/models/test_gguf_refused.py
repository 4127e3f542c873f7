"""Files that are cut, something else, or make no sense: each is told apart."""

import errno
import os
import struct
import time
from pathlib import Path

import numpy as np
import pytest

from eloquio.errors import (
    ModelFileInvalid,
    ModelFileMissing,
    ModelFileTruncated,
    ModelFileUnreadable,
    NotAModelFile,
)
from eloquio.models.gguf import read_header
from fixtures.gguf_files import cut, write_file, write_model, write_vocabulary

# Cut files ---------------------------------------------------------------------------------------


def test_one_missing_last_byte_is_found_and_both_sizes_are_named(tmp_path: Path) -> None:
    whole = write_model(tmp_path / "whole.gguf")
    size = read_header(whole).expected_file_bytes

    with pytest.raises(ModelFileTruncated) as caught:
        read_header(cut(whole, tmp_path / "cut.gguf", size - 1))

    assert f"has {size - 1} bytes, but needs at least {size}" in caught.value.message
    assert str(tmp_path) not in caught.value.message


def test_the_padding_behind_the_last_tensor_may_be_missing(tmp_path: Path) -> None:
    whole = write_file(
        tmp_path / "whole.gguf",
        architecture="llama",
        metadata={},
        tensors=[("odd", np.zeros(3, dtype=np.float32), None)],
    )
    unpadded = cut(whole, tmp_path / "unpadded.gguf", read_header(whole).expected_file_bytes)

    assert read_header(unpadded).weights_bytes == 12


def test_a_vocabulary_without_tensors_is_whole(tmp_path: Path) -> None:
    path = write_vocabulary(tmp_path / "vocab.gguf")

    header = read_header(path)

    assert header.tensors == ()
    assert header.expected_file_bytes <= path.stat().st_size


# Files that aren't GGUF --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "looks_like"),
    [
        (b"", "empty"),
        (b"hello there, I am no model\n", "a text file"),
        ("schöne Grüße".encode() * 60, "a text file"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "a web page"),
        (b"  \n<html>sign in</html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a Git LFS pointer"),
        (b"PK\x03\x04\x00\x00\x08\x08", "a zip archive"),
        (struct.pack("<Q", 40) + b'{"__metadata__":{}}', "a safetensors file"),
        (b"tjgg\x03\x00\x00\x00", "an older format"),
        (b"\x00" * 4096, "a download that has only begun"),
        (bytes(range(128, 256)), "some other kind of binary file"),
    ],
)
def test_what_isnt_gguf_is_called_what_it_looks_like(
    tmp_path: Path, content: bytes, looks_like: str
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)

    with pytest.raises(NotAModelFile, match=looks_like):
        read_header(path)


def test_a_folder_or_a_pipe_named_gguf_is_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "folder.gguf").mkdir()
    os.mkfifo(tmp_path / "pipe.gguf")

    for name in ("folder.gguf", "pipe.gguf"):
        with pytest.raises(NotAModelFile, match="not a regular file"):
            read_header(tmp_path / name)


def test_a_missing_file_is_called_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelFileMissing, match=r"gone\.gguf"):
        read_header(tmp_path / "gone.gguf")


def test_a_file_that_may_not_be_read_is_called_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_model(tmp_path / "model.gguf")

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)  # root, as whom tests may run, is refused nothing

    with pytest.raises(ModelFileUnreadable) as caught:
        read_header(path)

    assert caught.value.message == "model.gguf can't be read: Permission denied."


# Headers that make no sense ----------------------------------------------------------------------


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _header(version: int = 3, tensors: int = 0, entries: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries)


def _tensor(name: str, dims: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    head = _text(name) + struct.pack("<I", len(dims))
    return head + struct.pack(f"<{len(dims)}QIQ", *dims, kind, offset)


def _array(kind: int, count: int) -> bytes:
    return _text("key") + struct.pack("<IIQ", 9, kind, count)


_PADDING = b"\x00" * 4096


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (_header(version=1), "too old"),
        (_header(version=4), "newer than version 3"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (_header(tensors=2**62), "claims 4611686018427387904 tensors"),
        (_header(entries=2**40), "claims 1099511627776 metadata entries"),
        (_header(entries=1) + struct.pack("<Q", 2**20), "a name of 1048576 bytes"),
        (_header(entries=1) + _text("key") + struct.pack("<I", 13), "13 is no type"),
        (_header(entries=1) + _text("key") + struct.pack("<IQ", 8, 2**63), "a string of"),
        (_header(entries=1) + _array(4, 2**60), "an array of"),
        (_header(entries=1) + _array(99, 1), "99 is no type"),
        (_header(entries=1) + _array(8, 5_000_000), "absurdly large"),
        (_header(entries=1) + _array(9, 1) + struct.pack("<IQ", 9, 1) * 9, "nested too deeply"),
        (_header(entries=1) + _array(8, 1) + struct.pack("<Q", 2**63), "absurdly long"),
        (_header(entries=2) + 2 * (_text("key") + struct.pack("<IB", 0, 7)), "stands in it twice"),
        (_header(tensors=1) + _tensor("t", (1, 1, 1, 1, 1)), "5 dimensions"),
        (_header(tensors=1) + _tensor("t", (4,), kind=4), "unknown type 4"),
        (_header(tensors=1) + _tensor("t", (2**40, 2**40)), "absurdly large"),
        (_header(tensors=1) + _tensor("t", (33,), kind=2), "don't fill its blocks"),
        (_header(tensors=1) + _tensor("t", (8,), offset=3), "not aligned"),
        (_header(tensors=2) + _tensor("t", (16,)) + _tensor("u", (16,), offset=32), "overlaps"),
        (_header(tensors=2) + _tensor("t", (8,)) + _tensor("t", (8,), offset=32), "the same name"),
        (
            _header(tensors=1, entries=1)
            + _text("general.alignment")
            + struct.pack("<II", 4, 24)
            + _tensor("t", (8,)),
            "power of two",
        ),
    ],
)
def test_a_header_that_makes_no_sense_is_called_so(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content + _PADDING)

    with pytest.raises(ModelFileInvalid, match=reason):
        read_header(path)


def test_a_hostile_count_of_empty_strings_costs_no_time(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(_header(entries=1) + _array(8, 2**27))
    os.truncate(path, 2**30 + 4096)  # sparse: zeros, thus empty strings

    before = time.process_time()
    with pytest.raises(ModelFileInvalid):
        read_header(path)

    assert time.process_time() - before < 0.5


def test_control_characters_in_a_name_dont_reach_the_message(tmp_path: Path) -> None:
    path = tmp_path / "a\n\x1b[31mb.gguf"
    path.write_bytes(b"no")

    with pytest.raises(NotAModelFile) as caught:
        read_header(path)

    assert caught.value.message.isprintable()
