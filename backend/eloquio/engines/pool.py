"""Which engines run: the only place that knows."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Protocol

import aiohttp

from eloquio.engines import eviction
from eloquio.engines.back_off import BackOff
from eloquio.engines.broadcast import Broadcast
from eloquio.engines.devices import main_memory
from eloquio.engines.engine import Engine, EngineIsStopping, Workplace
from eloquio.engines.eviction import Placement
from eloquio.engines.inventory import Inventory
from eloquio.engines.kinds.llama_server import FlagReader
from eloquio.engines.ledger import Ledger
from eloquio.engines.roster import Roster
from eloquio.engines.run_folder import RunFolder
from eloquio.engines.spec import EngineSpec, Keeping
from eloquio.errors import EngineBusy, LoadCancelled, NoModelLoaded, ShuttingDown
from eloquio.settings import Settings

# With the time that open replies get, everything has ended within five seconds.
_CLOSING_GRACE_SECONDS = 1.5
# A driver takes a while to give back what a process held that is gone.
_MEMORY_RETURN_SECONDS = 3.0
# What a model was planned with is an estimate; what it really held may be less.
_MEMORY_RETURN_SHARE = 0.8
_POLL_SECONDS = 0.1

Plan = Callable[[], Awaitable[EngineSpec]]


class Planner(Protocol):
    """Knows the models on disk."""

    async def id_of(self, model: str) -> str:
        """The public id of the model that a request names."""

    async def plan_by_name(self, model: str) -> EngineSpec:
        """The engine for a request that names a model which isn't loaded."""


@dataclass(frozen=True)
class Terms:
    """What a load may do to others, and how long its model stays."""

    keep_others: bool = False
    force: bool = False
    """Ends the answers under way on models that have to make room."""
    ttl_seconds: float | None = None
    """None as the settings say, 0 never."""
    is_pinned: bool = False
    is_for_request: bool = False
    """Nobody loads it but a request that names it: held back after failures."""


@dataclass(eq=False)
class _Load:
    """One load, from its planning to its end. `spec` is there once it is planned."""

    asked: str
    terms: Terms
    spec: EngineSpec | None = None
    is_placed: bool = False
    task: "asyncio.Task[tuple[Engine, bool]]" = field(init=False, repr=False)

    @property
    def model(self) -> str:
        return self.asked if self.spec is None else self.spec.model

    def is_like(self, other: "_Load") -> bool:
        """Whether it does for `other` all that was asked."""
        mine, others = self.terms, other.terms
        same_terms = (mine.keep_others, mine.force) == (others.keep_others, others.force)
        return self.spec == other.spec and same_terms


class Pool:
    """Loads, leases and unloads engines, one model per task unless asked to keep others.

    A load belongs to the pool, not to the request that asked for it: a caller that leaves stops
    nothing, a second one joins, and only an unload cancels.
    """

    def __init__(
        self, settings: Settings, planner: Planner, inventory: Inventory, run_folder: RunFolder
    ) -> None:
        self.changed = Broadcast()
        self._run_folder = run_folder
        self._roster = Roster(self.changed.publish)
        self._workplace = Workplace(settings, run_folder.path, FlagReader(), self._engine_changed)
        self._planner = planner
        self._inventory = inventory
        self._loads: list[_Load] = []
        # The load of each model that is being placed, or waits for its turn.
        self._placing: dict[str, _Load] = {}
        # Placed one after the other, so that each sees the memory the one before really took.
        self._placement = asyncio.Lock()
        # Each model as it was loaded last, for the request that wakes it.
        self._remembered: dict[str, tuple[EngineSpec, Terms]] = {}
        self._back_offs: dict[str, BackOff] = {}
        self._numbers = count()
        self._latest: Engine | None = None
        self._idle_watch = asyncio.create_task(self._roster.end_idle(), name="idle time-outs")
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, settings: Settings, planner: Planner, inventory: Inventory) -> "Pool":
        """A pool with nothing loaded, once what a killed backend left behind is gone."""
        folder = await asyncio.to_thread(RunFolder.create, settings.home, settings.runtime_dir)
        return cls(settings, planner, inventory, folder)

    # What runs -------------------------------------------------------------------------------

    @property
    def engines(self) -> Sequence[Engine]:
        """The engines there are, the one that was loaded last at the end."""
        return self._roster.engines

    @property
    def active(self) -> Engine | None:
        """The engine that answers a request which names no model: the one loaded last."""
        serving = [engine for engine in self.engines if engine.is_serving]
        return serving[-1] if serving else None

    @property
    def latest(self) -> Engine | None:
        """The engine that was started last, whatever became of it."""
        return self._latest

    @property
    def resolving(self) -> Sequence[str]:
        """What was asked for and isn't planned yet, as it was asked."""
        return [load.asked for load in self._loads if load.spec is None]

    @property
    def queued(self) -> Sequence[str]:
        """The models whose load waits for its turn."""
        return [model for model, load in self._placing.items() if not load.is_placed]

    @property
    def is_loading(self) -> bool:
        return bool(self._loads)

    def is_ready(self) -> bool:
        return self.active is not None

    def ledger(self) -> Ledger:
        """What there is for models, with the accelerators as they were seen last."""
        promised_bytes = sum(engine.promised_bytes() for engine in self.engines)
        return Ledger(main_memory(), self._inventory.devices_seen, promised_bytes)

    # Loading and unloading -------------------------------------------------------------------

    async def load(self, asked: str, plan: Plan, terms: Terms = Terms()) -> tuple[Engine, bool]:
        """The engine that `plan` answers, ready, and whether it was so before.

        `asked` is what the caller calls the model: by it, too, an unload finds the load.
        """
        self._refuse_when_closing()
        load = _Load(asked, terms)
        load.task = asyncio.create_task(self._carry_out(load, plan), name=f"load {asked}")
        self._loads.append(load)
        load.task.add_done_callback(lambda _: self._forget(load))
        self.changed.publish()
        return await self._outcome(load)

    async def unload(self, model: str | None, *, force: bool = True) -> str | None:
        """Ends the model's engine and its loads, at whatever point; answers which, if any.

        Without `force`, EngineBusy if it answers a request.
        """
        name = model if model is not None else self._only_model()
        if name is None:
            return None
        loads = [load for load in self._loads if name in (load.asked, load.model)]
        name = loads[0].model if loads else name
        engine = self._roster.get(name)
        if engine is not None and not force and self._roster.is_asked(engine):
            raise EngineBusy(f"{name} is answering.")
        self._remembered.pop(name, None)
        if engine is None and not loads:
            return None
        for load in loads:
            load.task.cancel()
        if engine is not None:
            await self._roster.remove(engine)
        if loads:
            await asyncio.wait([load.task for load in loads])
        return name

    @asynccontextmanager
    async def lease(self, model: str | None) -> AsyncIterator[tuple[Engine, aiohttp.ClientSession]]:
        """A ready engine for one request, loaded on request if it isn't; busy until the end."""
        name = await self._name_of(model)
        with self._roster.claim(name):
            while True:
                engine = await self._engine_for(name)
                try:
                    async with engine.serving() as client:
                        yield engine, client
                        return
                except EngineIsStopping:
                    # The request came during a stop: it waits for that, and gets a fresh process.
                    await engine.stop()

    async def placement(self, spec: EngineSpec, terms: Terms = Terms()) -> Placement:
        """How `spec` would get its room now: what a load would do, without doing it."""
        await self._inventory.build()
        return self._decide(spec, terms)

    async def close(self) -> None:
        """Ends every load and engine; final. Who asks again waits for the same end."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    # Inside ----------------------------------------------------------------------------------

    async def _close(self) -> None:
        self.changed.close()
        loads = [load.task for load in self._loads]
        for task in [self._idle_watch, *loads]:
            task.cancel()
        await self._roster.close(_CLOSING_GRACE_SECONDS)
        await asyncio.gather(self._idle_watch, *loads, return_exceptions=True)
        await asyncio.to_thread(self._run_folder.remove)

    async def _name_of(self, model: str | None) -> str:
        self._refuse_when_closing()
        if model is None:
            active = self.active
            name = active.spec.model if active else self._roster.fell_asleep
            if name is None:
                raise NoModelLoaded("No model is loaded, and the request names none.")
            return name
        if self._roster.get(model) is not None or model in self._placing:
            return model
        return await self._planner.id_of(model)

    async def _engine_for(self, name: str) -> Engine:
        self._refuse_when_closing()
        if (engine := self._roster.get(name)) is not None and not engine.is_stopping:
            return engine
        if (pending := self._placing.get(name)) is not None:
            return (await self._outcome(pending))[0]
        self._back_off_of(name).refuse()
        # As it was loaded last, so that nothing of what was asked then is lost.
        spec, terms = self._remembered.get(name, (None, Terms()))

        async def plan() -> EngineSpec:
            return spec or await self._planner.plan_by_name(name)

        terms = replace(terms, force=False, is_for_request=True)
        engine, _ = await self.load(name, plan, terms)
        return engine

    async def _carry_out(self, load: _Load, plan: Plan) -> tuple[Engine, bool]:
        spec = load.spec = await plan()
        self.changed.publish()
        while (pending := self._placing.get(spec.model)) is not None:
            if pending.is_like(load):
                engine, _ = await self._outcome(pending)
                self._keep_as_asked(engine, load.terms)
                return engine, False
            await asyncio.wait([pending.task])
        running = self._roster.get(spec.model)
        if running is not None and running.spec == spec and running.is_serving:
            self._keep_as_asked(running, load.terms)
            return running, True
        self._placing[spec.model] = load
        try:
            return await self._place(load, spec), False
        finally:
            del self._placing[spec.model]

    async def _outcome(self, load: _Load) -> tuple[Engine, bool]:
        """The engine, once it is ready. A caller that leaves doesn't end the load."""
        try:
            return await asyncio.shield(load.task)
        except asyncio.CancelledError:
            if load.task.cancelled():
                self._refuse_when_closing()
                raise LoadCancelled("The load was cancelled by an unload.") from None
            raise

    async def _place(self, load: _Load, spec: EngineSpec) -> Engine:
        async with self._placement:
            self._refuse_when_closing()
            await self._inventory.refresh()
            placement = self._decide(spec, load.terms)
            await self._make_room(placement)
            if not load.terms.is_for_request:
                # Who loads it again wants it tried at once.
                self._back_offs.pop(spec.model, None)
            back_off, name = self._back_off_of(spec.model), str(next(self._numbers))
            keeping = self._keeping(load.terms)
            engine = Engine(placement.spec, name, self._workplace, back_off, keeping)
            self._remembered[spec.model] = (spec, load.terms)
            load.is_placed = True
            self._latest = engine
            self._roster.add(engine)
            await engine.ensure_ready()
            await self._roster.remove_all(
                other
                for other in self._engines_of(placement.stop_after)
                # Asked again while this one was loading, it is wanted beside it.
                if load.terms.force or not self._roster.is_asked(other)
            )
            return engine

    def _decide(self, spec: EngineSpec, terms: Terms) -> Placement:
        return eviction.place(
            spec,
            self._roster.residents(spec.model),
            self.ledger().free_bytes,
            keep_others=terms.keep_others,
            force=terms.force,
        )

    async def _make_room(self, placement: Placement) -> None:
        """Returns when what had to leave is gone and its memory is really back."""
        leaving = self._engines_of(placement.stop_first)
        held_bytes = sum(engine.held_bytes() for engine in leaving)
        expected = self.ledger().free_bytes + _MEMORY_RETURN_SHARE * held_bytes
        await self._roster.remove_all(leaving)
        if not leaving or not self._inventory.devices_seen:
            return  # main memory is back when its process is gone
        with suppress(TimeoutError):
            async with asyncio.timeout(_MEMORY_RETURN_SECONDS):
                while self.ledger().free_bytes < expected:
                    await asyncio.sleep(_POLL_SECONDS)
                    await self._inventory.refresh()

    def _engines_of(self, models: Iterable[str]) -> list[Engine]:
        return [engine for model in models if (engine := self._roster.get(model)) is not None]

    def _keeping(self, terms: Terms) -> Keeping:
        asked = terms.ttl_seconds
        default = self._workplace.settings.idle_unload_seconds
        ttl = default if asked is None else asked or None
        return Keeping(ttl_seconds=ttl, is_pinned=terms.is_pinned)

    def _keep_as_asked(self, engine: Engine, terms: Terms) -> None:
        if terms.is_for_request:
            return  # it wants an answer, and nothing of how long the model stays
        engine.keep(self._keeping(terms))
        if engine.spec.model in self._remembered:
            spec, _ = self._remembered[engine.spec.model]
            self._remembered[engine.spec.model] = (spec, terms)
        self._engine_changed()

    def _back_off_of(self, model: str) -> BackOff:
        return self._back_offs.setdefault(model, BackOff(self._workplace.clock))

    def _engine_changed(self) -> None:
        self.changed.publish()
        self._roster.wake_idle_watch()

    def _forget(self, load: _Load) -> None:
        self._loads.remove(load)
        if not load.task.cancelled():
            # Whoever asked may be gone; the engine's state still tells why it failed.
            load.task.exception()
        self.changed.publish()

    def _only_model(self) -> str | None:
        """The model meant by an unload that names none: one that is there, before one to come."""
        models = [engine.spec.model for engine in self.engines]
        settled = [model for model in models if model not in self._placing]
        candidates = settled or [load.model for load in self._loads]
        return candidates[-1] if candidates else None

    def _refuse_when_closing(self) -> None:
        if self._closing is not None:
            raise ShuttingDown("Eloquio is shutting down.")
