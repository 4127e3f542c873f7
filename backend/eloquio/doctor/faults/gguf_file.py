"""Writes the smallest GGUF files that pass for models: enough for a catalogue, not for an engine.

Layout (little-endian, version 3): magic, version, counts, metadata, tensor table, tensors' bytes.
"""

from pathlib import Path
from struct import pack

_U32, _STRING, _BOOL = 4, 8, 7
_F32 = 0
_ALIGNMENT = 32

Value = int | str | bool


def write_model(path: Path, *, weights_bytes: int = 512, context_length: int = 8192) -> Path:
    """A chat model of one layer. Its weights are a hole in the file: they cost no disk."""
    metadata: dict[str, Value] = {
        "general.architecture": "llama",
        "general.type": "model",
        "llama.context_length": context_length,
        "llama.block_count": 1,
        "llama.embedding_length": 64,
        "llama.attention.head_count": 4,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.chat_template": "{{ messages }}",
    }
    return _write(path, metadata, weights_bytes)


def write_projector(path: Path) -> Path:
    """What turns pictures into tokens for the model beside it."""
    metadata: dict[str, Value] = {
        "general.architecture": "clip",
        "general.type": "mmproj",
        "clip.has_vision_encoder": True,
    }
    return _write(path, metadata, 512)


def _write(path: Path, metadata: dict[str, Value], weights_bytes: int) -> Path:
    header = b"GGUF" + pack("<IQQ", 3, 1, len(metadata))
    for key, value in metadata.items():
        header += _text(key) + _value(value)
    # One tensor of one dimension, whose data begins where the header ends.
    header += _text("blk.0.weight") + pack("<IQIQ", 1, weights_bytes // 4, _F32, 0)
    data_start = -(-len(header) // _ALIGNMENT) * _ALIGNMENT
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(data_start + weights_bytes)
    return path


def _text(text: str) -> bytes:
    return pack("<Q", len(text.encode())) + text.encode()


def _value(value: Value) -> bytes:
    match value:
        case bool():
            return pack("<I?", _BOOL, value)
        case int():
            return pack("<II", _U32, value)
        case str():
            return pack("<I", _STRING) + _text(value)
