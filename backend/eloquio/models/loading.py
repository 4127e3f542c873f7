"""From what a person asks for to what an engine is to run."""

import asyncio
import re
from pathlib import Path

from eloquio.engines.eviction import SMALLEST_CONTEXT
from eloquio.engines.inventory import Inventory
from eloquio.engines.kinds import extra_args
from eloquio.engines.loads import Terms
from eloquio.engines.spec import DEFAULT_SLOTS, EngineOptions, EngineSpec, MemoryPlan
from eloquio.errors import InvalidRequest, ModelFileMissing, NotImplementedHere
from eloquio.models import advice, control_tokens, embedders, fit, references, sampling
from eloquio.models.catalog import Catalog, ModelEntry
from eloquio.models.schema import LoadRequest

DEFAULT_CONTEXT = 4096
_RPC_SERVER = re.compile(r"[A-Za-z0-9.\-]+:[0-9]{1,5}|\[[0-9A-Fa-f:]+\]:[0-9]{1,5}")


class Planner:
    """Resolves, measures and decides; starts nothing."""

    def __init__(self, catalog: Catalog, inventory: Inventory) -> None:
        self._catalog = catalog
        self._inventory = inventory

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
        options = await asyncio.to_thread(self._options, request)
        build = await self._inventory.build()
        uses_processor_alone = request.gpu_layers == 0 or not build.devices
        device = "cpu" if uses_processor_alone else build.devices[0].name
        assert entry.header is not None
        context = options.context_length or default_context(entry)

        def memory_at(context: int) -> MemoryPlan:
            return estimate(entry, options, context, device)

        return EngineSpec(
            model=entry.id,
            display_name=entry.display_name,
            kind="llama_server",
            task=entry.task,
            model_path=entry.path,
            # In a thread: a header can have thousands of layers.
            memory=await asyncio.to_thread(memory_at, context),
            options=options,
            context_length=context,
            memory_at=memory_at,
            projector_path=entry.projector,
            reads_whole=embedders.reads_whole(entry.header, entry.task),
            pooling=embedders.own_pooling(entry.header, entry.task),
            sampling=sampling.recommended([entry.id, entry.display_name], entry.header),
            native_context_length=entry.header.context_length or 0,
            quant=entry.quant,
            control_tokens=await asyncio.to_thread(
                control_tokens.read, entry.path, _template(entry, options)
            ),
            warnings=(
                *advice.beyond_training(context, entry.header.context_length),
                *advice.unused_cards(build),
                *advice.without_effect(request),
            ),
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


def terms(request: LoadRequest) -> Terms:
    """What the load may do to others, and how long its model stays."""
    return Terms(
        keep_others=request.keep_others,
        force=request.force,
        ttl_seconds=request.ttl_s,
        is_pinned=request.pin,
    )


def _refuse_impossible(request: LoadRequest) -> None:
    if request.engine in ("transformers", "unsloth", "remote"):
        raise NotImplementedHere(
            f"The engine {request.engine!r} isn't there yet: only GGUF models can be run.",
            param="engine",
            next_step="Leave engine out, and name a GGUF model.",
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


def _template(entry: ModelEntry, options: EngineOptions) -> str:
    assert entry.header is not None
    return options.chat_template or entry.header.text("tokenizer.chat_template") or ""


def default_context(entry: ModelEntry) -> int:
    """The context in tokens that the model is loaded with where none is asked for."""
    assert entry.header is not None
    native = entry.header.context_length or DEFAULT_CONTEXT
    return embedders.own_context(entry.header, entry.task, native)


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
        task=entry.task,
    )
