"""The HTTP shapes of loading, unloading and looking at models."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from eloquio.engines.spec import CacheType, Task
from eloquio.engines.state import EngineState
from eloquio.errors import InvalidRequest
from eloquio.store.preferences import Preferences, WorkerEnv

# What may stand in a command line. The bound also has half a surrogate pair refused.
_Argument = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]*$")]


class _Shape(BaseModel):
    # `model_path` and its like are the contract's names, not pydantic's.
    model_config = ConfigDict(protected_namespaces=())


class ModelReference(_Shape):
    """Names a model: a built-in id, `org/repo:QUANT`, an id of `/v1/models`, or a path."""

    model_path: str = Field(min_length=1, max_length=4096)
    gguf_variant: str | None = Field(default=None, max_length=200)
    hf_token: SecretStr | None = None
    trust_remote_code: bool = False
    """Run the Python code that the model's repository brings, where it needs that."""
    allow_pickle: bool = False
    """Take weights that are there only as pickle, which can run any code."""


class LoadRequest(ModelReference):
    max_seq_length: Annotated[int, Field(ge=0, le=1_048_576)] = 0
    """The context in tokens; 0 takes the model's native one."""
    cache_type_kv: CacheType | None = None
    chat_template_override: str | None = Field(default=None, max_length=1_000_000)
    n_parallel: Annotated[int, Field(ge=1, le=256)] | None = None
    gpu_layers: Annotated[int, Field(ge=0, le=10_000)] | None = None
    n_cpu_moe: Annotated[int, Field(ge=0, le=10_000)] | None = None
    tensor_split: list[Annotated[float, Field(ge=0)]] | None = None
    draft_model: _Argument | None = None
    lora_adapters: list[_Argument] | None = None
    rpc_servers: list[_Argument] | None = None
    extra_args: list[_Argument] | None = None
    engine: Literal["auto", "llama_server", "transformers", "unsloth", "remote"] = "auto"
    keep_others: bool = False
    force: bool = False
    """Ends the answers under way on models that have to make room."""
    load_in_4bit: bool = True
    is_lora: bool = False
    ttl_s: Annotated[float, Field(ge=0, le=10_000_000)] | None = None
    """Unload it after so many seconds without a request; 0 never; null as the settings say."""
    pin: bool = False
    """Only an unload that names it ends it: no other load, and no idle time-out."""


class Memory(_Shape):
    """Bytes, estimated from the model's header."""

    weights: int
    kv: int
    projector: int
    compute: int
    total: int
    device: str


class Inference(_Shape):
    """The model's recommended sampling; null leaves a value to the engine."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    trust_remote_code: bool = False


class LoadedModel(_Shape):
    """What is true of a model that is loaded, as its engine says it."""

    model: str
    display_name: str
    is_vision: bool
    is_lora: bool = False
    base_model: str | None = None
    """The id of the model that an adapter was loaded on."""
    adapters: list[str] = []
    """By the names that a request's `use_adapter` may give."""
    default_adapter: str | None = None
    """That of a request which doesn't say; null is the base."""
    is_gguf: bool
    gguf_variant: str | None
    is_audio: bool = False
    audio_type: str | None = None
    has_audio_input: bool
    inference: Inference
    context_length: int
    native_context_length: int
    supports_reasoning: bool
    supports_tools: bool
    cache_type_kv: str
    chat_template: str | None
    engine: str
    """What really holds it: llama_server, transformers or unsloth."""
    dtype: str | None = None
    task: Task
    memory: Memory
    warnings: list[str]
    load_seconds: float


class LoadReply(LoadedModel):
    status: Literal["loaded", "already_loaded"]


class ValidateReply(_Shape):
    valid: bool
    message: str
    identifier: str
    display_name: str
    is_gguf: bool
    is_lora: bool = False
    is_vision: bool
    audio_type: str | None = None
    memory: Memory | None
    native_context_length: int
    task: Task
    base_model: str | None = None
    warnings: list[str]
    stops: list[str]
    """The models that would be unloaded for it."""


class UnloadRequest(_Shape):
    model_path: str | None = None
    """Missing: the only model there is, or the one that was loaded last."""
    force: bool = True
    """False refuses with 409 while the model answers requests; true ends them."""


class UnloadReply(_Shape):
    status: Literal["unloaded", "not_loaded"]
    model: str | None


class KeepRequest(_Shape):
    """How long a loaded model stays; what is left out stays as it is."""

    model_path: str = Field(min_length=1, max_length=4096)
    ttl_s: Annotated[float, Field(ge=0, le=10_000_000)] | None = None
    pin: bool | None = None


class KeepReply(_Shape):
    model: str
    ttl_s: float | None
    pinned: bool


class EngineStatus(_Shape):
    """One engine, at whatever point of its life it is."""

    model: str
    display_name: str
    task: Task
    engine: str
    status: EngineState
    pid: int | None
    uptime_s: float | None
    busy: int
    """Requests the engine is serving now."""
    queued: int
    memory: Memory
    resident_bytes: int | None
    """What the engine's process holds in main memory now."""
    ttl_left_s: float | None
    pinned: bool
    restarts: int
    last_error: dict[str, Any] | None
    loaded: LoadedModel | None


class DeviceMemory(_Shape):
    """One accelerator's memory, in bytes, as llama-server told it last."""

    id: str
    name: str
    total: int
    free: int


class LedgerInfo(_Shape):
    """The machine's memory as loads are measured against it, in bytes."""

    total: int
    """Main memory, and the accelerators' own."""
    free: int
    """What a load could still get: `promised` and a reserve for the system are taken off."""
    promised: int
    """What loaded models were planned with and haven't touched yet."""
    devices: list[DeviceMemory]


class StatusReply(_Shape):
    active_model: str | None
    is_vision: bool
    is_lora: bool
    is_gguf: bool
    gguf_variant: str | None
    is_audio: bool
    audio_type: str | None
    has_audio_input: bool
    loading: list[str]
    loaded: list[str]
    asleep: list[str]
    """Unloaded because nobody asked for them; the next request that names one loads it again."""
    inference: Inference | None
    supports_reasoning: bool
    supports_tools: bool
    context_length: int | None
    engines: list[EngineStatus]
    ledger: LedgerInfo
    downloads: list[dict[str, Any]]


class LoadProgress(_Shape):
    """One step of a load. `total_bytes` is 0 where nothing is known; `eta_s` is a guess."""

    model: str | None
    phase: Literal["idle", "resolving", "downloading", "starting", "warming", "ready", "failed"]
    bytes: int = 0
    total_bytes: int = 0
    rate_bytes_per_s: float | None = None
    eta_s: float | None = None
    elapsed_s: float = 0.0
    message: str = ""
    error: dict[str, Any] | None = None


Modality = Literal["text", "image", "audio"]
Consent = Literal["trust_remote_code", "allow_pickle"]
CardStatus = Literal["loaded", "loading", "on_disk", "unusable"]


class ModelCard(_Shape):
    """One model of `/v1/models`: OpenAI's fields, and what the page shows of it."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    status: CardStatus
    task: Task
    modalities: list[Modality]
    context_length: int | None
    display_name: str
    source: Literal["builtin", "folder", "hub_cache"]
    quant: str | None
    size_bytes: int
    memory: Memory | None
    """At the context it would be loaded with by default."""
    is_gguf: bool
    is_lora: bool
    base_model: str | None
    """The id of the model that an adapter is for."""
    consents: list[Consent]
    """The fields that a load of it has to send as true."""
    problem: str | None
    """Why it can't be loaded, when `status` is unusable."""


class WorkerEnvironment(_Shape):
    """Another torch environment, and the models that run in it: by any one of these."""

    python: Annotated[str, Field(min_length=1, max_length=4096)]
    transformers_version: Annotated[str, Field(pattern=r"^\d+(\.\w+)*$", max_length=40)] | None = (
        None
    )
    """As the model's config.json tells it, or its beginning."""
    architectures: Annotated[
        list[Annotated[str, Field(max_length=200)]], Field(max_length=100)
    ] = []
    models: Annotated[list[Annotated[str, Field(max_length=400)]], Field(max_length=100)] = []

    def checked(self) -> WorkerEnv:
        """With a Python that can be run. Looks at the disk."""
        python = Path(self.python).expanduser()
        if "\0" in self.python or not python.is_absolute() or not os.access(python, os.X_OK):
            raise InvalidRequest(
                "A worker environment names no Python that can be run.",
                param="worker_envs",
                next_step="Give the whole path of its bin/python.",
            )
        if not (self.transformers_version or self.architectures or self.models):
            raise InvalidRequest(
                "A worker environment is for no model.",
                param="worker_envs",
                next_step="Give transformers_version, architectures or models.",
            )
        return WorkerEnv.model_validate(self.model_dump())


class PageSettings(_Shape):
    """What the person chose on the page."""

    model_dirs: list[Annotated[str, Field(min_length=1, max_length=4096)]] = Field(max_length=100)
    load_on_start: bool
    worker_envs: Annotated[list[WorkerEnvironment], Field(max_length=100)] | None = None
    """The first that fits a model is the one it runs in; null leaves them as they are."""

    @classmethod
    def of(cls, preferences: Preferences) -> "PageSettings":
        return cls(
            model_dirs=[str(folder) for folder in preferences.model_dirs],
            load_on_start=preferences.load_on_start,
            worker_envs=[
                WorkerEnvironment.model_validate(env.model_dump(mode="json"))
                for env in preferences.worker_envs
            ],
        )

    def environments(self) -> tuple[WorkerEnv, ...] | None:
        """Each with a Python that can be run. Looks at the disk."""
        if self.worker_envs is None:
            return None
        return tuple(environment.checked() for environment in self.worker_envs)

    def existing_folders(self) -> tuple[Path, ...]:
        """The folders, each of which has to be one. Looks at the disk."""
        folders = tuple(Path(name).expanduser() for name in self.model_dirs)
        for folder in folders:
            if not folder.is_absolute() or "\0" in str(folder) or not folder.is_dir():
                raise InvalidRequest(
                    f"{folder.name or 'This'} is not a folder on this machine.",
                    param="model_dirs",
                    next_step="Give the folder's whole path, beginning with / or ~.",
                )
        return tuple(dict.fromkeys(folders))


class ModelList(_Shape):
    object: Literal["list"] = "list"
    data: list[ModelCard]
