"""What a worker is started with: written by the backend, read by the worker's process.

Both ends import it, so it needs nothing but the standard library.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

ModelKind = Literal["text", "vision", "audio_language", "transcription", "embedding"]
"""What its forward pass takes and gives: text; text and pictures; text and sound; sound to text;
text to vectors."""
Loader = Literal["auto", "transformers", "unsloth"]


# Of the context that each further request has for itself: few at once are that long.
_SHARE_TOKENS = 4096


def cache_tokens(context_length: int, slots: int) -> int:
    """Of `slots` requests, one may fill the whole context while each other has 4096 tokens of it.

    They share them: two that are long fit as well, while the others are short.
    """
    return context_length + (slots - 1) * min(context_length, _SHARE_TOKENS)


@dataclass(frozen=True)
class AdapterPlan:
    """One LoRA adapter on the model; `name` is what a request calls it."""

    name: str
    path: str


@dataclass(frozen=True)
class WorkerPlan:
    """One model and how it is to run. Paths are absolute."""

    model: str
    """The public id, told in every answer."""
    model_path: str
    """The folder with config.json and the weights; an adapter's base, where it is for one."""
    kind: ModelKind
    loader: Loader = "auto"
    """auto: unsloth where there is a GPU that it supports and it takes the model."""
    load_in_4bit: bool = False
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    trust_remote_code: bool = False
    allow_pickle: bool = False
    device: Literal["auto", "cpu"] = "auto"
    context_length: int = 0
    """In tokens, of one request; 0 takes the model's own."""
    slots: int = 8
    """How many requests are answered at once."""
    threads: int | None = None
    """For a model on the processor; None leaves it to torch."""
    weights_bytes: int = 0
    chat_template: str | None = None
    """In place of the model's own, as Jinja text."""
    adapters: tuple[AdapterPlan, ...] = ()
    default_adapter: str | None = None
    """The adapter of a request that doesn't say; None is the base."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    """Recommended sampling, for the fields that a request leaves out."""

    @property
    def cache_tokens(self) -> int:
        """How many tokens of cache all requests share: what memory was planned for."""
        return cache_tokens(self.context_length, self.slots)

    def write(self, path: Path) -> None:
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> "WorkerPlan":
        fields: dict[str, Any] = json.loads(path.read_text())
        adapters = tuple(AdapterPlan(**adapter) for adapter in fields.pop("adapters"))
        return cls(adapters=adapters, **fields)
