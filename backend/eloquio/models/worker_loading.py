"""What a worker for a folder of safetensors, or for an adapter, is to run."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from eloquio.engines.devices import processor_features
from eloquio.engines.spec import EngineOptions, EngineSpec, MemoryPlan, Sampling
from eloquio.errors import InvalidRequest, PickleRefused, RemoteCodeRefused
from eloquio.models import advice, control_tokens, fit_config, precision, sampling, tokenizer_files
from eloquio.models.entry import AdapterFolder, ModelEntry, SafetensorsFolder
from eloquio.models.four_bit import in_4bit
from eloquio.models.schema import LoadRequest
from eloquio.store.preferences import WorkerEnv
from eloquio.worker_plan import AdapterPlan, WorkerPlan

# Of a longer context that nobody asked for, the cache alone would take what others need.
_LONGEST_UNASKED = 32_768
_LONGEST_READ = 8192

Folder = SafetensorsFolder | AdapterFolder


async def spec(
    entry: ModelEntry,
    files: Folder,
    request: LoadRequest,
    further: Sequence[ModelEntry],
    accelerator: str | None,
    environments: Sequence[WorkerEnv],
) -> EngineSpec:
    """`further`: adapters beside the entry's own. `accelerator`: its name, where there is one."""
    model = model_of(files)
    refuse_without_consent(entry, files, request)
    _refuse_what_only_llama_server_has(request)
    device = accelerator or "cpu" if request.gpu_layers != 0 else "cpu"
    base = files.base if isinstance(files, AdapterFolder) else entry
    adapters = _adapters([entry, *further] if base is not entry else further, base)
    is_in_4bit, sentences = in_4bit(request, entry, device)
    context = request.max_seq_length or default_context(model)
    slots = request.n_parallel or fit_config.DEFAULT_SLOTS
    adapter_bytes = sum(a.weights_bytes - base.weights_bytes for a in adapters.values())

    widened = precision.is_widened(model, device, processor_features())

    def memory_at(context: int) -> MemoryPlan:
        return fit_config.plan(
            model,
            adapter_bytes,
            context,
            slots,
            device,
            in_4bit=is_in_4bit,
            is_widened=widened,
        )

    recommended = await asyncio.to_thread(_sampling, entry, base)
    plan = WorkerPlan(
        model=entry.id,
        model_path=str(base.path),
        kind=model.kind,
        loader=request.engine if request.engine in ("transformers", "unsloth") else "auto",
        load_in_4bit=is_in_4bit,
        dtype="float32" if widened else "auto",
        trust_remote_code=request.trust_remote_code,
        allow_pickle=request.allow_pickle,
        device="cpu" if device == "cpu" else "auto",
        slots=slots,
        chat_template=request.chat_template_override or None,
        adapters=tuple(AdapterPlan(name, str(a.path)) for name, a in adapters.items()),
        default_adapter=next(iter(adapters)) if base is not entry else None,
        **asdict(recommended),
    )
    return EngineSpec(
        model=entry.id,
        display_name=entry.display_name,
        kind="worker",
        task=entry.task,
        model_path=entry.path,
        memory=memory_at(context),
        options=EngineOptions(
            context_length=request.max_seq_length or None,
            n_parallel=request.n_parallel,
            chat_template=request.chat_template_override or None,
        ),
        context_length=context,
        memory_at=memory_at,
        sampling=recommended,
        native_context_length=model.config.context_length,
        worker=plan,
        worker_python=_python_for(model, {entry.id, base.id}, environments),
        base_model=base.id if base is not entry else None,
        control_tokens=await asyncio.to_thread(
            control_tokens.of_folder, base.path, request.chat_template_override
        ),
        warnings=(
            *sentences,
            *((precision.WIDENED,) if widened else ()),
            *advice.beyond_training(context, model.config.context_length),
            *advice.shorter_than_own(context, request.max_seq_length, model.config.context_length),
            *advice.without_effect_on_worker(request, model.config),
        ),
    )


def model_of(files: Folder) -> SafetensorsFolder:
    """What computes: of an adapter its base."""
    return files.model if isinstance(files, AdapterFolder) else files


def default_context(model: SafetensorsFolder) -> int:
    """The context in tokens that it is loaded with where none is asked for."""
    longest = _LONGEST_READ if model.kind == "embedding" else _LONGEST_UNASKED
    return min(model.config.context_length, longest)


def estimate(files: Folder, weights_bytes: int, context_length: int, device: str) -> MemoryPlan:
    """What it holds in memory by default, in its own precision."""
    model = model_of(files)
    further = weights_bytes - model.weights.size_bytes
    slots = fit_config.DEFAULT_SLOTS
    widened = precision.is_widened(model, device, processor_features())
    return fit_config.plan(
        model, further, context_length, slots, device, in_4bit=False, is_widened=widened
    )


def refuse_without_consent(entry: ModelEntry, files: Folder, request: LoadRequest) -> None:
    """PickleRefused or RemoteCodeRefused for what runs foreign code that nobody has allowed."""
    if (files.is_pickle or model_of(files).is_pickle) and not request.allow_pickle:
        raise PickleRefused(
            f"The weights of {entry.id} are there only as pickle, which can run any code.",
            param="allow_pickle",
        )
    if model_of(files).needs_code and not request.trust_remote_code:
        raise RemoteCodeRefused(
            f"{entry.id} needs Python code that its own repository brings.",
            param="trust_remote_code",
        )


def _refuse_what_only_llama_server_has(request: LoadRequest) -> None:
    if request.engine == "llama_server":
        raise InvalidRequest(
            "llama_server runs GGUF only, and the model is safetensors.",
            param="engine",
            next_step="Leave engine out, or name the model as GGUF.",
        )
    for param in ("extra_args", "rpc_servers", "draft_model", "gguf_variant"):
        if getattr(request, param):
            raise InvalidRequest(
                f"{param} is for GGUF models; this one is safetensors.",
                param=param,
                next_step="Leave it out.",
            )


def _adapters(entries: Iterable[ModelEntry], base: ModelEntry) -> dict[str, ModelEntry]:
    """By the names under which requests ask for them: short ones where those are clear."""
    found: dict[str, ModelEntry] = {}
    for entry in entries:
        files = entry.files
        if not isinstance(files, AdapterFolder):
            raise InvalidRequest(f"{entry.id} is no LoRA adapter.", param="lora_adapters")
        if files.base.id != base.id:
            raise InvalidRequest(
                f"{entry.id} was trained on {files.base.id}, not on {base.id}.",
                param="lora_adapters",
            )
        is_there = any(other.id == entry.id for other in found.values())
        if not is_there:
            found[entry.display_name if entry.display_name not in found else entry.id] = entry
    return found


def _sampling(entry: ModelEntry, base: ModelEntry) -> Sampling:
    own = tokenizer_files.table_or_empty(entry.path / "generation_config.json")
    config = own or tokenizer_files.table_or_empty(base.path / "generation_config.json")
    names = [entry.id, entry.display_name, base.id, base.display_name]
    return sampling.recommended_by_config(names, config)


def _python_for(
    model: SafetensorsFolder, ids: set[str], environments: Sequence[WorkerEnv]
) -> Path | None:
    config = model.config
    for environment in environments:
        if environment.fits(config.transformers_version, config.architectures, ids):
            return environment.python
    return None
