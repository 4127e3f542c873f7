"""What has to stop so that a model fits, and the context it is started with. Decides, does nothing.

A context that was asked for is given or refused. Only the model's own, which nobody asked for, is
halved until it fits, and that is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eloquio.engines.spec import EngineSpec, MemoryPlan, Task
from eloquio.errors import EngineBusy, ModelDoesNotFit

SMALLEST_CONTEXT = 256
# Idle models are stopped for a context of this length that nobody asked for, not for a longer one.
_COMFORTABLE_CONTEXT = 8192


@dataclass(frozen=True)
class Resident:
    """An engine that is there, as far as making room is concerned."""

    model: str
    task: Task
    size_bytes: int
    """What its end gives back."""
    last_used: float
    is_busy: bool = False
    """It answers, or a request waits for it."""
    is_loading: bool = False
    is_pinned: bool = False
    is_settled: bool = False
    """Nothing of it runs: it failed."""


@dataclass(frozen=True)
class Placement:
    """What to start, which models to stop before, and which once it is ready."""

    spec: EngineSpec
    stop_first: tuple[str, ...] = ()
    stop_after: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    """Of `stop_first`, what is stopped for want of memory alone."""


def place(
    wanted: EngineSpec,
    running: Sequence[Resident],
    free_bytes: int,
    *,
    keep_others: bool = False,
    force: bool = False,
) -> Placement:
    """How `wanted` gets its room: EngineBusy or ModelDoesNotFit where it can't have it.

    One model per task, unless the others are kept. Beyond that the least recently used make room,
    but none that is loading, answering (unless forced) or pinned.
    """
    own = [resident for resident in running if resident.model == wanted.model]
    replaced = [resident for resident in running if _is_replaced(resident, wanted, keep_others)]
    _refuse_busy([*own, *replaced], force)
    freed_bytes = free_bytes + sum(resident.size_bytes for resident in [*own, *replaced])
    idle = [
        resident
        for resident in running
        if resident not in [*own, *replaced] and _may_be_evicted(resident, force)
    ]
    evicted, freed_bytes = _evicted(wanted, idle, freed_bytes)
    spec = _fitted(wanted, freed_bytes)
    if spec is None:
        raise _refusal(wanted, running, freed_bytes, [*own, *replaced, *evicted])
    for resident in evicted:
        spec = _warned(spec, f"{resident.model} was unloaded to make room.")
    # Not on a GPU: there an engine that finds little room would take fewer layers.
    fits_beside = spec.memory.device == "cpu" and spec.memory.total_bytes <= free_bytes
    stays = [resident for resident in replaced if fits_beside and not resident.is_settled]
    first = [resident for resident in [*own, *replaced, *evicted] if resident not in stays]
    return Placement(spec, _names(first), _names(stays), _names(evicted))


def _is_replaced(resident: Resident, wanted: EngineSpec, keep_others: bool) -> bool:
    if resident.model == wanted.model or resident.task != wanted.task:
        return False
    return resident.is_settled or not (keep_others or resident.is_pinned)


def _may_be_evicted(resident: Resident, force: bool) -> bool:
    is_taken = resident.is_pinned or resident.is_loading or resident.is_settled
    return not is_taken and (force or not resident.is_busy)


def _refuse_busy(leaving: Sequence[Resident], force: bool) -> None:
    busy = [resident.model for resident in leaving if resident.is_busy]
    if busy and not force:
        raise EngineBusy(
            f"Answers are under way on what would have to make room: {', '.join(busy)}."
        )


def _evicted(
    wanted: EngineSpec, idle: Sequence[Resident], free_bytes: int
) -> tuple[list[Resident], int]:
    """The least recently used that have to go, and what is free then. None if that isn't enough."""
    most_bytes = free_bytes + sum(resident.size_bytes for resident in idle)
    needed_bytes = next((n for n in _needs(wanted) if n <= most_bytes), 0)
    evicted: list[Resident] = []
    for resident in sorted(idle, key=lambda resident: (resident.is_busy, resident.last_used)):
        if free_bytes >= needed_bytes:
            break
        evicted.append(resident)
        free_bytes += resident.size_bytes
    return evicted, free_bytes


def _needs(wanted: EngineSpec) -> list[int]:
    """The bytes that others may be stopped for: the first that can be had."""
    contexts = [wanted.context_length]
    if wanted.options.context_length is None:
        contexts = [min(wanted.context_length, _COMFORTABLE_CONTEXT), SMALLEST_CONTEXT]
    return [_memory_at(wanted, context).total_bytes for context in contexts]


def _fitted(wanted: EngineSpec, free_bytes: int) -> EngineSpec | None:
    """`wanted`, its own context halved until it fits; None if not even the smallest does."""
    context = wanted.context_length
    while (memory := _memory_at(wanted, context)).total_bytes > free_bytes:
        if wanted.options.context_length is not None or context <= SMALLEST_CONTEXT:
            return None
        context = max(SMALLEST_CONTEXT, context // 2)
    fitted = replace(wanted, context_length=context, memory=memory)
    if context == wanted.context_length:
        return fitted
    return _warned(
        fitted,
        f"The model's whole context of {wanted.context_length} tokens doesn't fit into memory:"
        f" it is loaded with {context}.",
    )


def _memory_at(wanted: EngineSpec, context: int) -> MemoryPlan:
    if wanted.memory_at is None or context == wanted.context_length:
        return wanted.memory
    return wanted.memory_at(context)


def _refusal(
    wanted: EngineSpec, running: Sequence[Resident], free_bytes: int, leaving: Sequence[Resident]
) -> EngineBusy | ModelDoesNotFit:
    kept = [resident for resident in running if resident not in leaving]
    busy = [r for r in kept if (r.is_busy or r.is_loading) and not r.is_pinned]
    if _fitted(wanted, free_bytes + sum(resident.size_bytes for resident in busy)) is not None:
        names = ", ".join(resident.model for resident in busy)
        next_step = "Wait until it is loaded." if any(r.is_loading for r in busy) else None
        return EngineBusy(f"There is room only once these are idle: {names}.", next_step=next_step)
    asked = wanted.options.context_length
    context = SMALLEST_CONTEXT if asked is None else asked
    needed = _memory_at(wanted, context).total_bytes
    pinned = ", ".join(resident.model for resident in kept if resident.is_pinned)
    return ModelDoesNotFit(
        f"The model needs {_gib(needed)} with a context of {context} tokens;"
        f" {_gib(free_bytes)} are free{f', beside the pinned {pinned}' if pinned else ''}.",
        param="max_seq_length",
    )


def _warned(spec: EngineSpec, sentence: str) -> EngineSpec:
    return replace(spec, warnings=(*spec.warnings, sentence))


def _names(residents: Sequence[Resident]) -> tuple[str, ...]:
    return tuple(resident.model for resident in residents)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 1024**3:.1f} GiB"
