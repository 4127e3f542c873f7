"""What runs and what is on disk, in the API's shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from eloquio.engines.engine import Engine
from eloquio.engines.eviction import Placement
from eloquio.engines.ledger import Ledger
from eloquio.engines.pool import Pool
from eloquio.engines.spec import EngineSpec, MemoryPlan
from eloquio.engines.state import Failed, Ready, Starting, Stopped
from eloquio.models.entry import (
    AdapterFolder,
    Files,
    GgufFiles,
    ModelEntry,
    SafetensorsFolder,
    UnusableFolder,
)
from eloquio.models.loading import by_default
from eloquio.models.schema import (
    CardStatus,
    Consent,
    DeviceMemory,
    EngineStatus,
    Inference,
    LedgerInfo,
    LoadedModel,
    LoadProgress,
    Memory,
    Modality,
    ModelCard,
    StatusReply,
    ValidateReply,
)


def memory(plan: MemoryPlan) -> Memory:
    return Memory(
        weights=plan.weights_bytes,
        kv=plan.kv_bytes,
        projector=plan.projector_bytes,
        compute=plan.compute_bytes,
        total=plan.total_bytes,
        device=plan.device,
    )


def inference(spec: EngineSpec) -> Inference:
    trusts = spec.worker is not None and spec.worker.trust_remote_code
    return Inference(**asdict(spec.sampling), trust_remote_code=trusts)


def loaded_model(engine: Engine) -> LoadedModel | None:
    """None unless the engine is ready: only then is anything known to be true of it."""
    if not isinstance(engine.state, Ready) or (facts := engine.facts) is None:
        return None
    spec = engine.spec
    return LoadedModel(
        model=spec.model,
        display_name=spec.display_name,
        is_vision=facts.is_vision,
        is_lora=spec.base_model is not None,
        base_model=spec.base_model,
        adapters=list(facts.adapters),
        default_adapter=facts.default_adapter,
        is_gguf=spec.kind == "llama_server",
        gguf_variant=spec.quant,
        audio_type=audio_type(spec),
        has_audio_input=facts.has_audio_input,
        inference=inference(spec),
        context_length=facts.context_length,
        native_context_length=spec.native_context_length,
        supports_reasoning=facts.supports_reasoning,
        supports_tools=facts.supports_tools,
        cache_type_kv=_cache_type(spec, facts.dtype),
        chat_template=facts.chat_template or None,
        engine=facts.loader,
        dtype=facts.dtype,
        task=spec.task,
        memory=memory(spec.memory),
        warnings=engine.warnings,
        load_seconds=engine.state.load_seconds,
    )


def audio_type(spec: EngineSpec) -> str | None:
    """How a model that hears does it; None of one that doesn't, or not by the worker."""
    match spec.worker.kind if spec.worker else None:
        case "transcription":
            return "whisper"
        case "audio_language":
            return "audio_vlm"
        case _:
            return None


def _cache_type(spec: EngineSpec, dtype: str | None) -> str:
    """A worker keeps keys and values as it computes with them."""
    if spec.kind == "worker":
        return {"float32": "f32", "bfloat16": "bf16"}.get(dtype or "", "f16")
    return spec.options.cache_type_kv or "f16"


def engine_status(engine: Engine) -> EngineStatus:
    error = engine.last_error
    return EngineStatus(
        model=engine.spec.model,
        display_name=engine.spec.display_name,
        task=engine.spec.task,
        engine=engine.facts.loader if engine.facts else engine.spec.kind,
        status=engine.state,
        pid=engine.pid,
        uptime_s=engine.uptime_seconds,
        busy=engine.busy,
        queued=engine.waiting,
        memory=memory(engine.spec.memory),
        resident_bytes=engine.resident_bytes(),
        ttl_left_s=engine.ttl_left_seconds,
        pinned=engine.keeping.is_pinned,
        restarts=engine.restarts,
        last_error=None if error is None else error.body()["error"],
        loaded=loaded_model(engine),
    )


def status(pool: Pool) -> StatusReply:
    engines = [engine for engine in pool.engines if not isinstance(engine.state, Stopped)]
    active = loaded_model(pool.active) if pool.active else None
    starting = [engine.spec.model for engine in engines if isinstance(engine.state, Starting)]
    return StatusReply(
        active_model=active.model if active else None,
        is_vision=bool(active and active.is_vision),
        is_lora=bool(active and active.is_lora),
        is_gguf=bool(active and active.is_gguf),
        gguf_variant=active.gguf_variant if active else None,
        is_audio=False,
        audio_type=active.audio_type if active else None,
        has_audio_input=bool(active and active.has_audio_input),
        loading=[*starting, *pool.queued, *pool.awaiting, *pool.resolving],
        loaded=[engine.spec.model for engine in engines if isinstance(engine.state, Ready)],
        asleep=list(pool.asleep),
        inference=active.inference if active else None,
        supports_reasoning=bool(active and active.supports_reasoning),
        supports_tools=bool(active and active.supports_tools),
        context_length=active.context_length if active else None,
        engines=[engine_status(engine) for engine in engines],
        ledger=ledger(pool.ledger()),
        downloads=[],
    )


def ledger(known: Ledger) -> LedgerInfo:
    return LedgerInfo(
        total=known.total_bytes,
        free=known.free_bytes,
        promised=known.promised_bytes,
        devices=[
            DeviceMemory(id=d.id, name=d.name, total=d.total_bytes, free=d.free_bytes)
            for d in known.devices
        ],
    )


def load_progress(pool: Pool) -> LoadProgress:
    """How far the load under way is, or how the last one ended."""
    engine = pool.latest
    match engine.state if engine else None:
        case Starting() as state if engine is not None:
            return _starting(engine.spec, state)
        case _ if pool.queued:
            return LoadProgress(
                model=pool.queued[0], phase="starting", message="Waiting for its turn."
            )
        case _ if pool.awaiting:
            model, words = next(iter(pool.awaiting.items()))
            return LoadProgress(model=model, phase="downloading", message=words)
        case _ if pool.resolving:
            return LoadProgress(
                model=pool.resolving[0], phase="resolving", message="Looking at the model."
            )
        case Ready(load_seconds=seconds) if engine is not None:
            total = engine.spec.memory.weights_bytes
            return LoadProgress(
                model=engine.spec.model,
                phase="ready",
                bytes=total,
                total_bytes=total,
                elapsed_s=seconds,
                message="Ready.",
            )
        case Failed(error=error) if engine is not None:
            return LoadProgress(
                model=engine.spec.model, phase="failed", message=error["message"], error=error
            )
        case _:
            return LoadProgress(model=None, phase="idle", message="Nothing is being loaded.")


def _starting(spec: EngineSpec, state: Starting) -> LoadProgress:
    rate = state.loaded_bytes / state.elapsed_seconds if state.elapsed_seconds > 0 else None
    left = state.total_bytes - state.loaded_bytes
    return LoadProgress(
        model=spec.model,
        phase=state.phase,
        bytes=state.loaded_bytes,
        total_bytes=state.total_bytes,
        rate_bytes_per_s=rate,
        eta_s=left / rate if rate else None,
        elapsed_s=state.elapsed_seconds,
        message="Reading the weights." if left > 0 else "Preparing the context.",
    )


def in_memory(pool: Pool) -> Mapping[str, CardStatus]:
    """Of the models that are loaded or being loaded, which they are, as of now."""
    statuses: dict[str, CardStatus] = {}
    for engine in pool.engines:
        match engine.state:
            case Ready():
                statuses[engine.spec.model] = "loaded"
            case Starting():
                statuses[engine.spec.model] = "loading"
    return statuses | dict.fromkeys([*pool.queued, *pool.awaiting], "loading")


def model_cards(
    entries: Sequence[ModelEntry], statuses: Mapping[str, CardStatus]
) -> list[ModelCard]:
    """Loaded models first, then what is on disk, in the catalogue's order.

    Plans each of them: call it in a thread.
    """
    cards = [model_card(entry, statuses) for entry in entries]
    order = {"loaded": 0, "loading": 1, "on_disk": 2, "unusable": 3}
    return sorted(cards, key=lambda card: order[card.status])


def model_card(entry: ModelEntry, statuses: Mapping[str, CardStatus]) -> ModelCard:
    default = None if entry.problem else by_default(entry)
    context, plan = default if default else (None, None)
    return ModelCard(
        id=entry.id,
        created=entry.created,
        owned_by=entry.repository.split("/")[0] if entry.repository else "local",
        status="unusable" if entry.problem else statuses.get(entry.id, "on_disk"),
        task=entry.task,
        modalities=modalities(entry.files),
        context_length=context,
        display_name=entry.display_name,
        source=entry.source,
        quant=entry.variant,
        size_bytes=entry.size_bytes,
        memory=memory(plan) if plan else None,
        is_gguf=isinstance(entry.files, GgufFiles),
        is_lora=is_lora(entry.files),
        base_model=_base_model(entry.files),
        consents=_consents(entry.files),
        problem=entry.problem.message if entry.problem else None,
    )


def modalities(files: Files) -> list[Modality]:
    """What it takes beside text, as far as its files tell."""
    match files:
        case GgufFiles(projector=projector):
            return ["text", "image"] if projector else ["text"]
        case SafetensorsFolder(kind="transcription"):
            return ["audio"]
        case SafetensorsFolder(kind=kind, config=config):
            found: list[Modality] = ["text"]
            if kind == "vision" or (kind == "audio_language" and config.has_vision):
                found.append("image")
            if kind == "audio_language":
                found.append("audio")
            return found
        case AdapterFolder(model=model):
            return modalities(model)
        case UnusableFolder():
            return ["text"]


def is_lora(files: Files) -> bool:
    match files:
        case AdapterFolder():
            return True
        case UnusableFolder(is_adapter=is_adapter):
            return is_adapter
        case GgufFiles() | SafetensorsFolder():
            return False


def _base_model(files: Files) -> str | None:
    return files.base.id if isinstance(files, AdapterFolder) else None


def _consents(files: Files) -> list[Consent]:
    if not isinstance(files, SafetensorsFolder | AdapterFolder):
        return []
    model = files.model if isinstance(files, AdapterFolder) else files
    found: list[Consent] = ["trust_remote_code"] if model.needs_code else []
    return [*found, "allow_pickle"] if files.is_pickle or model.is_pickle else found


def validation(placement: Placement) -> ValidateReply:
    """What a load would do, and to which models."""
    spec = placement.spec
    return ValidateReply(
        valid=True,
        message="It can be loaded.",
        identifier=spec.model,
        display_name=spec.display_name,
        is_gguf=spec.kind == "llama_server",
        is_lora=spec.base_model is not None,
        base_model=spec.base_model,
        is_vision=_will_see(spec),
        audio_type=audio_type(spec),
        task=spec.task,
        memory=memory(spec.memory),
        native_context_length=spec.native_context_length,
        warnings=list(spec.warnings),
        stops=[*placement.stop_first, *placement.stop_after],
    )


def _will_see(spec: EngineSpec) -> bool:
    is_vision = spec.worker is not None and spec.worker.kind == "vision"
    return is_vision or spec.projector_path is not None
