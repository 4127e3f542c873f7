"""What an engine is to run: decided by `models`, carried out by `engines`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from eloquio.worker_plan import WorkerPlan

Task = Literal["chat", "speech", "transcription", "embedding", "rerank"]
EngineKind = Literal["llama_server", "worker"]
# What llama-server takes when it isn't told.
DEFAULT_SLOTS = 4
CacheType = Literal["f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "f32"]


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes a model is expected to hold, estimated from its header before it is loaded."""

    weights_bytes: int
    kv_bytes: int
    projector_bytes: int
    compute_bytes: int
    device: str
    """What holds the weights: "cpu", or a device's name."""

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.kv_bytes + self.projector_bytes + self.compute_bytes


@dataclass(frozen=True)
class Sampling:
    """The model's recommended sampling; what a field leaves None is left to the engine."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None


@dataclass(frozen=True)
class EngineOptions:
    """Everything a person can ask of an engine. Equal options mean the same engine.

    None or an empty tuple leaves the choice to the engine.
    """

    context_length: int | None = None
    n_parallel: int | None = None
    cache_type_kv: CacheType | None = None
    gpu_layers: int | None = None
    n_cpu_moe: int | None = None
    tensor_split: tuple[float, ...] = ()
    chat_template: str | None = None
    draft_model: Path | None = None
    lora_adapters: tuple[Path, ...] = ()
    rpc_servers: tuple[str, ...] = ()
    extra_args: tuple[str, ...] = ()


@dataclass(frozen=True)
class EngineSpec:
    """One model with the options it is to run with."""

    model: str
    """The public id: `builtin/…`, `org/repo:QUANT`, or a name within a model folder."""
    display_name: str
    kind: EngineKind
    task: Task
    model_path: Path
    """The file of a llama-server; a worker's folder, the adapter's where it is for one."""
    memory: MemoryPlan = field(compare=False)
    options: EngineOptions = EngineOptions()
    context_length: int = field(default=0, compare=False)
    """The context to start with: the one asked for, or the one chosen where none was."""
    memory_at: Callable[[int], MemoryPlan] | None = field(default=None, compare=False, repr=False)
    """What it holds with another context than `context_length`."""
    projector_path: Path | None = None
    reads_whole: bool = False
    """Whether each of its inputs has to fit one batch: every token of it looks at all others."""
    pooling: Literal["mean"] | None = None
    """How an embedding model's vectors become one, where its file doesn't say."""
    sampling: Sampling = Sampling()
    native_context_length: int = 0
    quant: str | None = None
    worker: WorkerPlan | None = None
    """A worker's own choices; the context is that of the spec, which may have to be a shorter."""
    base_model: str | None = None
    """The public id of what an adapter is loaded on."""
    worker_python: Path | None = None
    """The environment it runs in; None for the one that the settings name."""
    control_tokens: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The texts by which the model's turns are told apart: in a message they would forge one."""
    warnings: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Keeping:
    """How long a model stays loaded: of no concern to its engine, so it changes without a start."""

    ttl_seconds: float | None = None
    """Ends it after so long without a request; None never."""
    is_pinned: bool = False
    """Only an unload that names it ends it."""


def batch_tokens(device: str) -> int:
    """How many tokens of a prompt an engine on `device` reads at once (its `--ubatch-size`).

    A prompt's reading can be stopped only between two batches. On a processor a batch of 64 takes a
    fraction of a second even for a model of some billion weights, and a larger one gains little.
    """
    return 64 if device == "cpu" else 512
