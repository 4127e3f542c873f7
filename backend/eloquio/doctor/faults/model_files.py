"""Models on disk for a scenario's engine: GGUF files, or folders of safetensors."""

import json
from contextvars import ContextVar
from pathlib import Path
from struct import pack
from typing import Literal

from eloquio.doctor.faults import gguf_file

ENGINE: ContextVar[Literal["llama_server", "worker"]] = ContextVar("ENGINE", default="llama_server")
"""What runs the models of the scenario under way."""
_WEIGHTS_BYTES = 16 * 2**20
_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "vocab_size": 32,
    "max_position_embeddings": 8192,
}


def place(shelf: Path, model: str) -> Path:
    """Where the model of that id lies."""
    return shelf / (model if ENGINE.get() == "worker" else f"{model}.gguf")


def write_model(shelf: Path, model: str) -> Path:
    """A model that passes for one. Its weights are a hole in a file: they cost no disk."""
    target = place(shelf, model)
    if ENGINE.get() == "llama_server":
        return gguf_file.write_model(target, weights_bytes=_WEIGHTS_BYTES)
    target.mkdir(parents=True, exist_ok=True)
    (target / "config.json").write_text(json.dumps(_CONFIG))
    tensor = {"dtype": "F32", "shape": [_WEIGHTS_BYTES // 4], "data_offsets": [0, _WEIGHTS_BYTES]}
    header = json.dumps({"model.norm.weight": tensor}).encode()
    with (target / "model.safetensors").open("wb") as file:
        file.write(pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + _WEIGHTS_BYTES)
    return target
