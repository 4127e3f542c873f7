"""A model that lies on this machine: what every one has, and the files of each form."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eloquio.engines.spec import Task
from eloquio.errors import EloquioError
from eloquio.models.adapter_config import AdapterConfig
from eloquio.models.gguf import GgufHeader
from eloquio.models.model_config import ModelConfig
from eloquio.models.safetensors_header import Weights
from eloquio.worker_plan import ModelKind

Source = Literal["builtin", "folder", "hub_cache"]


@dataclass(frozen=True)
class GgufFiles:
    """A model for llama-server."""

    shards: tuple[Path, ...]
    quant: str | None
    projector: Path | None
    projector_bytes: int
    header: GgufHeader | None
    """None where it can't be read."""


@dataclass(frozen=True)
class SafetensorsFolder:
    """A model for the worker: config.json and weights, as Hugging Face's libraries save them."""

    config: ModelConfig
    weights: Weights
    kind: ModelKind
    is_pickle: bool = False
    """Whether the weights are there only as pickle."""
    needs_code: bool = False
    """Whether nothing but the repository's own code can run it."""


@dataclass(frozen=True)
class AdapterFolder:
    """A LoRA adapter, which is run on its base."""

    config: AdapterConfig
    weights: Weights
    base: "ModelEntry"
    is_pickle: bool = False

    @property
    def model(self) -> SafetensorsFolder:
        """The base's files."""
        assert isinstance(self.base.files, SafetensorsFolder)
        return self.base.files


@dataclass(frozen=True)
class UnusableFolder:
    """A folder of a model that can't be loaded, as far as is known what it is."""

    is_adapter: bool


Files = GgufFiles | SafetensorsFolder | AdapterFolder | UnusableFolder


@dataclass(frozen=True)
class ModelEntry:
    """One model that lies on this machine; `problem` says why it can't be loaded."""

    id: str
    display_name: str
    source: Source
    path: Path
    """What an engine is given: a file, of several the first shard, or a folder."""
    files: Files
    size_bytes: int
    weights_bytes: int
    problem: EloquioError | None
    task: Task
    created: int
    """When it was last changed, in seconds since 1970."""
    repository: str | None = None
    """`org/repo`, where the layout of the folders tells it."""

    @property
    def folder(self) -> Path:
        return self.path.parent if isinstance(self.files, GgufFiles) else self.path

    @property
    def paths(self) -> tuple[Path, ...]:
        """Each path that names it."""
        return self.files.shards if isinstance(self.files, GgufFiles) else (self.path,)

    @property
    def variant(self) -> str | None:
        """By what it is told apart from others of its repository."""
        return self.files.quant if isinstance(self.files, GgufFiles) else None
