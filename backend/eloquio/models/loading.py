"""From what a person asks for to what an engine is to run."""

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from eloquio.engines.devices import nvidia_devices
from eloquio.engines.eviction import SMALLEST_CONTEXT
from eloquio.engines.inventory import Inventory
from eloquio.engines.kinds import extra_args
from eloquio.engines.loads import Terms
from eloquio.engines.spec import EngineOptions, EngineSpec, MemoryPlan
from eloquio.errors import EngineMissing, InvalidRequest, ModelFileMissing, NotImplementedHere
from eloquio.models import gguf_loading, references, worker_loading
from eloquio.models.catalog import Catalog
from eloquio.models.entry import AdapterFolder, GgufFiles, ModelEntry, SafetensorsFolder
from eloquio.models.schema import LoadRequest
from eloquio.store.preferences import WorkerEnv

_RPC_SERVER = re.compile(r"[A-Za-z0-9.\-]+:[0-9]{1,5}|\[[0-9A-Fa-f:]+\]:[0-9]{1,5}")


class Planner:
    """Resolves, measures and decides; starts nothing, and reads nothing but metadata."""

    def __init__(
        self,
        catalog: Catalog,
        inventory: Inventory,
        environments: Callable[[], Sequence[WorkerEnv]] = tuple,
    ) -> None:
        """`environments`: those for certain models, beside the one that the settings name."""
        self._catalog = catalog
        self._inventory = inventory
        self._environments = environments

    async def plan_by_name(self, model: str) -> EngineSpec:
        """For a request that names a model on disk: loaded as it would be by default."""
        return await self.plan(LoadRequest(model_path=model))

    async def id_of(self, model_path: str) -> str:
        """The public id of what a person calls `model_path`."""
        return (await asyncio.to_thread(self._catalog.resolve, model_path, None)).id

    async def plan(self, request: LoadRequest) -> EngineSpec:
        """The engine for `request`, with the context that it should have if there is room."""
        _refuse_impossible(request)
        entry = await asyncio.to_thread(
            self._catalog.resolve, request.model_path, request.gguf_variant
        )
        match entry.files:
            case GgufFiles() as files:
                options = await asyncio.to_thread(self._options, request)
                build = await self._inventory.build()
                return await gguf_loading.spec(entry, files, request, options, build)
            case SafetensorsFolder() | AdapterFolder() as files:
                further = await asyncio.to_thread(self._adapters, request.lora_adapters or ())
                accelerator = await self._accelerator()
                return await worker_loading.spec(
                    entry, files, request, further, accelerator, self._environments()
                )
            case _:  # has a problem, with which it can't be resolved
                raise AssertionError(entry.id)

    async def _accelerator(self) -> str | None:
        """The name of a GPU that torch can use, whatever llama-server can."""
        try:
            build = await self._inventory.build()
        except EngineMissing:
            cards = await asyncio.to_thread(nvidia_devices)
            return cards[0].name if cards else None
        metal = [device for device in build.devices if device.kind == "metal"]
        usable = [*build.cards, *metal]
        return usable[0].name if usable else None

    def _adapters(self, names: Sequence[str]) -> list[ModelEntry]:
        try:
            return [self._catalog.resolve(name) for name in names if name]
        except InvalidRequest as error:
            error.param = "lora_adapters"
            raise

    def _options(self, request: LoadRequest) -> EngineOptions:
        draft, adapters = request.draft_model, request.lora_adapters or ()
        return EngineOptions(
            context_length=request.max_seq_length or None,
            n_parallel=request.n_parallel,
            cache_type_kv=request.cache_type_kv,
            gpu_layers=request.gpu_layers,
            n_cpu_moe=request.n_cpu_moe,
            tensor_split=tuple(request.tensor_split or ()),
            chat_template=request.chat_template_override or None,
            draft_model=self._allowed_file(draft, "draft_model") if draft else None,
            lora_adapters=tuple(
                self._allowed_file(name, "lora_adapters") for name in adapters if name
            ),
            rpc_servers=tuple(request.rpc_servers or ()),
            extra_args=tuple(request.extra_args or ()),
        )

    def _allowed_file(self, name: str, param: str) -> Path:
        references.refuse_unprintable(name, None)
        path = references.allowed_path(name, self._catalog.allowed_folders(), param)
        if path is None or not path.is_file():
            raise ModelFileMissing("A file that the load names isn't there.", param=param)
        return path


def terms(request: LoadRequest) -> Terms:
    """What the load may do to others, and how long its model stays."""
    return Terms(
        keep_others=request.keep_others,
        force=request.force,
        ttl_seconds=request.ttl_s,
        is_pinned=request.pin,
    )


def _refuse_impossible(request: LoadRequest) -> None:
    if request.engine == "remote":
        raise NotImplementedHere(
            "An engine on another machine can't be named in a load.",
            param="engine",
            next_step="Leave engine out, and name a model of GET /v1/models.",
        )
    extra_args.refuse_untunable(request.extra_args or ())
    for server in request.rpc_servers or ():
        if not _RPC_SERVER.fullmatch(server):
            raise InvalidRequest(
                f"{server!r} is no RPC server.", param="rpc_servers", next_step="Give host:port."
            )
    if 0 < request.max_seq_length < SMALLEST_CONTEXT:
        raise InvalidRequest(
            f"A context of {request.max_seq_length} tokens is too short for any answer.",
            param="max_seq_length",
            next_step=f"Give at least {SMALLEST_CONTEXT}, or 0 for the model's own.",
        )


def by_default(entry: ModelEntry) -> tuple[int, MemoryPlan] | None:
    """The context in tokens that a load without options gives, and what it holds in memory then.

    None where that can't be known. On the processor, in the model's own precision.
    """
    match entry.files:
        case GgufFiles(header=header) as files if header is not None:
            context = gguf_loading.default_context(entry, files)
            return context, gguf_loading.estimate(entry, files, EngineOptions(), context, "cpu")
        case SafetensorsFolder() | AdapterFolder() as files:
            context = worker_loading.default_context(worker_loading.model_of(files))
            return context, worker_loading.estimate(files, entry.weights_bytes, context, "cpu")
        case _:
            return None
