"""From what a person asks for to what an engine is to run."""

import asyncio
import re
from pathlib import Path

from eloquio.engines.devices import main_memory
from eloquio.engines.inventory import Build, Inventory
from eloquio.engines.kinds import llama_server
from eloquio.engines.pool import Pool
from eloquio.engines.spec import EngineOptions, EngineSpec, MemoryPlan
from eloquio.errors import InvalidRequest, ModelDoesNotFit, ModelFileMissing, NotImplementedHere
from eloquio.models import advice, fit, references, sampling
from eloquio.models.catalog import Catalog, ModelEntry
from eloquio.models.schema import LoadRequest

DEFAULT_CONTEXT = 4096
SMALLEST_CONTEXT = 256
_RPC_SERVER = re.compile(r"[A-Za-z0-9.\-]+:[0-9]{1,5}|\[[0-9A-Fa-f:]+\]:[0-9]{1,5}")
# What llama-server takes when it isn't told.
DEFAULT_SLOTS = 4
# Left to the system and to what else runs, so that a load doesn't push the desktop into swap.
RESERVE_BYTES = 512 * 1024 * 1024


class Planner:
    """Resolves, measures and decides; starts nothing."""

    def __init__(self, catalog: Catalog, inventory: Inventory) -> None:
        self._catalog = catalog
        self._inventory = inventory

    async def plan_by_name(self, model: str, pool: Pool) -> EngineSpec:
        """For a request that names a model on disk: loaded as it would be by default."""
        return await self.plan(LoadRequest(model_path=model), pool)

    async def id_of(self, model_path: str) -> str:
        """The public id of what a person calls `model_path`."""
        return (await asyncio.to_thread(self._catalog.resolve, model_path, None)).id

    async def plan(self, request: LoadRequest, pool: Pool | None = None) -> EngineSpec:
        """The engine for `request`. Memory that `pool`'s engines would give back counts as free."""
        _refuse_what_is_not_there(request)
        entry = await asyncio.to_thread(
            self._catalog.resolve, request.model_path, request.gguf_variant
        )
        options = await asyncio.to_thread(self._options, request)
        build = await self._inventory.build()
        device = build.devices[0].name if build.devices else "cpu"
        free_bytes = await _free_bytes(build)
        given_back_bytes = 0
        if pool is not None and not request.keep_others:
            given_back_bytes = sum(
                engine.resident_bytes() or 0
                for engine in pool.engines
                if engine.spec.task == entry.task
            )
        # In a thread: a header can have thousands of layers.
        context, plan, warnings = await asyncio.to_thread(
            _placed, entry, options, free_bytes + given_back_bytes, device
        )
        assert entry.header is not None
        return EngineSpec(
            model=entry.id,
            display_name=entry.display_name,
            kind="llama_server",
            task=entry.task,
            model_path=entry.path,
            memory=plan,
            options=options,
            context_length=context,
            projector_path=entry.projector,
            sampling=sampling.recommended([entry.id, entry.display_name], entry.header),
            native_context_length=entry.header.context_length or 0,
            # Not on a GPU: there an engine that finds little room would take fewer layers.
            fits_beside=device == "cpu" and plan.total_bytes + RESERVE_BYTES <= free_bytes,
            quant=entry.quant,
            warnings=(*warnings, *advice.without_effect(request)),
        )

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


async def _free_bytes(build: Build) -> int:
    memory = await asyncio.to_thread(main_memory)
    # Where the devices' memory is main memory too, it counts once.
    own = [device.free_bytes for device in build.devices if device.kind != "metal"]
    return memory.available_bytes + sum(own)


def _refuse_what_is_not_there(request: LoadRequest) -> None:
    if request.engine in ("transformers", "unsloth", "remote"):
        raise NotImplementedHere(
            f"The engine {request.engine!r} isn't there yet: only GGUF models can be run.",
            param="engine",
            next_step="Leave engine out, and name a GGUF model.",
        )
    llama_server.refuse_untunable(request.extra_args or ())
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
    if request.ttl_s is not None or request.pin:
        raise NotImplementedHere(
            "Idle time-outs and pinning aren't there yet.",
            param="pin" if request.pin else "ttl_s",
            next_step="Leave it out; a loaded model stays until another one is loaded.",
        )


def _placed(
    entry: ModelEntry, options: EngineOptions, free_bytes: int, device: str
) -> tuple[int, MemoryPlan, list[str]]:
    """The context to load with, what it takes, and what the person should know of it.

    A context that was asked for is given or refused; only the model's own, which nobody asked for,
    is halved until it fits, and that is said.
    """
    assert entry.header is not None
    native = entry.header.context_length or DEFAULT_CONTEXT
    context = options.context_length or native
    plan = estimate(entry, options, context, device)
    budget = free_bytes - RESERVE_BYTES
    warnings: list[str] = []
    if options.context_length is None:
        while plan.total_bytes > budget and context > SMALLEST_CONTEXT:
            context = max(SMALLEST_CONTEXT, context // 2)
            plan = estimate(entry, options, context, device)
        if context < native:
            warnings.append(
                f"The model's whole context of {native} tokens doesn't fit into memory:"
                f" it is loaded with {context}."
            )
    elif context > native and entry.header.context_length:
        warnings.append(
            f"The model was made for a context of {native} tokens; beyond it, answers get worse."
        )
    if plan.total_bytes > budget:
        raise ModelDoesNotFit(
            f"The model needs {_gib(plan.total_bytes)} with a context of {context} tokens;"
            f" {_gib(max(budget, 0))} are free.",
            param="max_seq_length",
        )
    return context, plan, warnings


def estimate(
    entry: ModelEntry, options: EngineOptions, context_length: int, device: str
) -> MemoryPlan:
    """What `entry` holds in memory with these options."""
    assert entry.header is not None
    return fit.plan(
        entry.header,
        entry.weights_bytes,
        entry.projector_bytes,
        context_length,
        options.n_parallel or DEFAULT_SLOTS,
        options.cache_type_kv,
        device,
    )


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 1024**3:.1f} GiB"
