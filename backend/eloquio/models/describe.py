"""What runs and what is on disk, in the API's shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from eloquio.engines.engine import Engine
from eloquio.engines.eviction import Placement
from eloquio.engines.ledger import Ledger
from eloquio.engines.pool import Pool
from eloquio.engines.spec import EngineOptions, EngineSpec, MemoryPlan, Sampling
from eloquio.engines.state import Failed, Ready, Starting, Stopped
from eloquio.models.catalog import ModelEntry
from eloquio.models.loading import default_context, estimate
from eloquio.models.schema import (
    CardStatus,
    DeviceMemory,
    EngineStatus,
    Inference,
    LedgerInfo,
    LoadedModel,
    LoadProgress,
    Memory,
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


def inference(sampling: Sampling) -> Inference:
    return Inference.model_validate(asdict(sampling))


def loaded_model(engine: Engine) -> LoadedModel | None:
    """None unless the engine is ready: only then is anything known to be true of it."""
    if not isinstance(engine.state, Ready) or (facts := engine.facts) is None:
        return None
    spec = engine.spec
    return LoadedModel(
        model=spec.model,
        display_name=spec.display_name,
        is_vision=facts.is_vision,
        is_gguf=True,
        gguf_variant=spec.quant,
        has_audio_input=facts.has_audio_input,
        inference=inference(spec.sampling),
        context_length=facts.context_length,
        native_context_length=spec.native_context_length,
        supports_reasoning=facts.supports_reasoning,
        supports_tools=facts.supports_tools,
        cache_type_kv=spec.options.cache_type_kv or "f16",
        chat_template=facts.chat_template or None,
        engine=spec.kind,
        task=spec.task,
        memory=memory(spec.memory),
        warnings=engine.warnings,
        load_seconds=engine.state.load_seconds,
    )


def engine_status(engine: Engine) -> EngineStatus:
    error = engine.last_error
    return EngineStatus(
        model=engine.spec.model,
        display_name=engine.spec.display_name,
        task=engine.spec.task,
        engine=engine.spec.kind,
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
        is_gguf=bool(active and active.is_gguf),
        gguf_variant=active.gguf_variant if active else None,
        is_audio=False,
        audio_type=None,
        has_audio_input=bool(active and active.has_audio_input),
        loading=[*starting, *pool.queued, *pool.resolving],
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
    return statuses | dict.fromkeys(pool.queued, "loading")


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
    header = entry.header
    context = default_context(entry) if header else None
    usable = entry.problem is None and context is not None
    plan = estimate(entry, EngineOptions(), context, "cpu") if usable and context else None
    return ModelCard(
        id=entry.id,
        created=entry.created,
        owned_by=entry.repository.split("/")[0] if entry.repository else "local",
        status="unusable" if entry.problem else statuses.get(entry.id, "on_disk"),
        task=entry.task,
        modalities=["text", "image"] if entry.projector else ["text"],
        context_length=context,
        display_name=entry.display_name,
        source=entry.source,
        quant=entry.quant,
        size_bytes=entry.size_bytes,
        memory=memory(plan) if plan else None,
        problem=entry.problem.message if entry.problem else None,
    )


def validation(placement: Placement) -> ValidateReply:
    """What a load would do, and to which models."""
    spec = placement.spec
    return ValidateReply(
        valid=True,
        message="It can be loaded.",
        identifier=spec.model,
        display_name=spec.display_name,
        is_gguf=True,
        is_vision=spec.projector_path is not None,
        memory=memory(spec.memory),
        native_context_length=spec.native_context_length,
        warnings=list(spec.warnings),
        stops=[*placement.stop_first, *placement.stop_after],
    )
