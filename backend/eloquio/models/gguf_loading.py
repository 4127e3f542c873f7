"""What an engine for a GGUF model is to run."""

import asyncio

from eloquio.engines.inventory import Build
from eloquio.engines.spec import DEFAULT_SLOTS, EngineOptions, EngineSpec, MemoryPlan
from eloquio.errors import InvalidRequest
from eloquio.models import advice, control_tokens, embedders, fit, sampling
from eloquio.models.entry import GgufFiles, ModelEntry
from eloquio.models.gguf import GgufHeader
from eloquio.models.schema import LoadRequest

_DEFAULT_CONTEXT = 4096


async def spec(
    entry: ModelEntry, files: GgufFiles, request: LoadRequest, options: EngineOptions, build: Build
) -> EngineSpec:
    """With the context that it should have if there is room."""
    if request.engine in ("transformers", "unsloth"):
        raise InvalidRequest(
            f"{entry.id} is GGUF, which {request.engine} doesn't run here.",
            param="engine",
            next_step="Leave engine out, or name the model as safetensors.",
        )
    uses_processor_alone = request.gpu_layers == 0 or not build.devices
    device = "cpu" if uses_processor_alone else build.devices[0].name
    header = header_of(files)
    context = options.context_length or default_context(entry, files)

    def memory_at(context: int) -> MemoryPlan:
        return estimate(entry, files, options, context, device)

    template = options.chat_template or header.text("tokenizer.chat_template") or ""
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
        projector_path=files.projector,
        reads_whole=embedders.reads_whole(header, entry.task),
        pooling=embedders.own_pooling(header, entry.task),
        sampling=sampling.recommended([entry.id, entry.display_name], header),
        native_context_length=header.context_length or 0,
        quant=files.quant,
        control_tokens=await asyncio.to_thread(control_tokens.read, entry.path, template),
        warnings=(
            *advice.beyond_training(context, header.context_length),
            *advice.unused_cards(build),
            *advice.without_effect(request),
        ),
    )


def header_of(files: GgufFiles) -> GgufHeader:
    """Of files without a problem."""
    assert files.header is not None
    return files.header


def default_context(entry: ModelEntry, files: GgufFiles) -> int:
    """The context in tokens that the model is loaded with where none is asked for."""
    header = header_of(files)
    return embedders.own_context(header, entry.task, header.context_length or _DEFAULT_CONTEXT)


def estimate(
    entry: ModelEntry,
    files: GgufFiles,
    options: EngineOptions,
    context_length: int,
    device: str,
) -> MemoryPlan:
    """What `entry` holds in memory with these options."""
    return fit.plan(
        header_of(files),
        entry.weights_bytes,
        files.projector_bytes,
        context_length,
        options.n_parallel or DEFAULT_SLOTS,
        options.cache_type_kv,
        device,
        task=entry.task,
    )
