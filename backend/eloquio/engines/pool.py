"""Which engines run: the only place that knows."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import count

import aiohttp

from eloquio.engines.back_off import BackOff
from eloquio.engines.broadcast import Broadcast
from eloquio.engines.engine import Engine, EngineIsGone
from eloquio.engines.eviction import Placement
from eloquio.engines.inventory import Inventory
from eloquio.engines.kinds import worker_environment
from eloquio.engines.kinds.llama_binary import FlagReader
from eloquio.engines.ledger import Ledger
from eloquio.engines.loads import DEFAULT_TERMS, Load, Plan, Planner, Terms
from eloquio.engines.room import Room
from eloquio.engines.roster import Roster
from eloquio.engines.run_folder import RunFolder
from eloquio.engines.spawner import Workplace
from eloquio.engines.spec import EngineSpec, Keeping, Task
from eloquio.engines.tasks import refuse_other_task
from eloquio.errors import (
    EloquioError,
    EngineBusy,
    LoadCancelled,
    ModelUnloaded,
    NoModelLoaded,
    ShuttingDown,
)
from eloquio.settings import Settings

# With the time that open replies get, everything has ended within five seconds.
_CLOSING_GRACE_SECONDS = 1.5


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
        self._room = Room(self._roster, inventory)
        self._loads: list[Load] = []
        # The load of each model that is being placed, or waits for its turn.
        self._placing: dict[str, Load] = {}
        # Placed one after the other, so that each sees the memory the one before really took.
        self._placement = asyncio.Lock()
        # How each model was loaded last, for the request that wakes it.
        self._remembered: dict[str, tuple[Plan, Terms]] = {}
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
        """The engine that answers a chat which names no model: the one loaded last.

        Where none is made for chat, the last of the others.
        """
        serving = [engine for engine in self.engines if engine.is_serving]
        chatting = [engine for engine in serving if engine.spec.task == "chat"]
        return next(reversed(chatting or serving), None)

    @property
    def latest(self) -> Engine | None:
        """The engine that was started last, whatever became of it."""
        return self._latest

    @property
    def asleep(self) -> Sequence[str]:
        """Models that were ended because nobody asked for them: the next request wakes them."""
        return self._roster.asleep

    @property
    def resolving(self) -> Sequence[str]:
        """What was asked for and isn't planned yet, as it was asked."""
        return [load.asked for load in self._loads if load.spec is None]

    @property
    def queued(self) -> Sequence[str]:
        """The models whose load waits for its turn."""
        return [model for model, load in self._placing.items() if not load.is_placed]

    @property
    def awaiting(self) -> Mapping[str, str]:
        """The models that wait for something their engine needs, and for what, in a sentence."""
        return {load.model: load.waits_for for load in self._loads if load.waits_for}

    @property
    def is_loading(self) -> bool:
        return bool(self._loads)

    def is_ready(self) -> bool:
        return self.active is not None

    def ledger(self) -> Ledger:
        """What there is for models, with the accelerators as they were seen last."""
        return self._room.ledger()

    # Loading and unloading -------------------------------------------------------------------

    async def load(
        self, asked: str, plan: Plan, terms: Terms = DEFAULT_TERMS
    ) -> tuple[Engine, bool]:
        """The engine that `plan` answers, ready, and whether it was so before.

        `asked` is what the caller calls the model: by it, too, an unload finds the load.
        """
        self._refuse_when_closing()
        load = Load(asked, terms)
        load.task = asyncio.create_task(self._carry_out(load, plan), name=f"load {asked}")
        self._loads.append(load)
        load.task.add_done_callback(lambda _: self._forget(load))
        self.changed.publish()
        return await self._outcome(load)

    async def unload(self, model: str | None, *, force: bool = True) -> str | None:
        """Ends the model's engine and its loads, at whatever point; answers which, if any.

        Without `force`, EngineBusy if it answers a request. ModelNotFound for a name that nothing
        here has.
        """
        name = model if model is not None else self._only_model()
        if name is None:
            return None
        is_known = self._roster.get(name) is not None or name in self._placing
        ended = await self._end(name, force)
        if is_known or model is None:
            return ended
        # It may be what a person calls a model: a path, or an id without its quant.
        try:
            public = await self._planner.id_of(name)
        except EloquioError:
            if ended is None:
                raise
            return ended
        return await self._end(public, force) or ended

    async def keep(self, model: str, change: Callable[[Terms], Terms]) -> Engine:
        """Changes how long a loaded model stays; NoModelLoaded if it isn't loaded."""
        engine = self._roster.get(model) or self._roster.get(await self._planner.id_of(model))
        if engine is None or engine.is_gone:
            raise NoModelLoaded(f"{model} isn't loaded.")
        _, terms = self._remembered.get(engine.spec.model, (None, DEFAULT_TERMS))
        self._keep_as_asked(engine, replace(change(terms), is_for_request=False))
        return engine

    async def name_of(self, model: str | None, task: Task | None = None) -> str:
        """The public id of the model that a request names, or means by naming none."""
        self._refuse_when_closing()
        if model is None:
            if (latest := self._roster.latest_for(task)) is None:
                raise NoModelLoaded("No model is loaded, and the request names none.")
            return latest
        if self._roster.get(model) is not None or model in self._placing:
            return model
        try:
            return await self._planner.id_of(model)
        except EloquioError as error:
            error.param = "model"
            raise

    @asynccontextmanager
    async def lease(
        self, model: str | None, slots: int = 1, task: Task | None = None
    ) -> AsyncIterator[tuple[Engine, aiohttp.ClientSession]]:
        """A ready engine for one request, loaded on request if it isn't; busy until the end.

        `slots` of it are the request's own, once it is its turn. QueueFull; and ModelCannotChat,
        say, before a model that isn't for `task` is loaded.
        """
        name = await self.name_of(model, task)
        with self._roster.claim(name):
            while True:
                engine = await self._engine_for(name, task)
                refuse_other_task(engine.spec, task)
                try:
                    async with engine.serving(slots) as client:
                        yield engine, client
                        return
                except EngineIsGone:
                    if engine.is_unloaded:
                        raise ModelUnloaded("The model was unloaded before it answered.") from None
                    # The request came during a stop: it waits for that, and gets a fresh process.
                    await engine.stop()

    async def placement(self, spec: EngineSpec, terms: Terms = DEFAULT_TERMS) -> Placement:
        """How `spec` would get its room now: what a load would do, without doing it."""
        await self._inventory.refresh()
        running = self._roster.get(spec.model)
        if running is not None and running.spec == spec and running.is_serving:
            return Placement(running.spec)
        return self._room.decide(spec, terms)

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

    async def _end(self, name: str, force: bool) -> str | None:
        """Ends what goes by `name`: engines, and loads, be they planned or not."""
        loads = [load for load in self._loads if name in (load.asked, load.model)]
        models = {name, *(load.model for load in loads)}
        engines = [engine for model in models if (engine := self._roster.get(model)) is not None]
        if not force and (busy := [e for e in engines if self._roster.is_asked(e)]):
            raise EngineBusy(f"{busy[0].spec.model} is answering.")
        for load in loads:
            load.task.cancel()
        for model in models:
            self._remembered.pop(model, None)
            self._roster.forget(model)
        await asyncio.gather(*(self._roster.remove(e, is_unload=True) for e in engines))
        if loads:
            await asyncio.wait([load.task for load in loads])
        return engines[0].spec.model if engines else loads[0].model if loads else None

    async def _engine_for(self, name: str, task: Task | None) -> Engine:
        self._refuse_when_closing()
        if (engine := self._roster.get(name)) is not None and not engine.is_gone:
            return engine
        try:
            if (pending := self._placing.get(name)) is not None:
                return (await self._outcome(pending))[0]
            self._back_off_of(name).refuse()
            plan, terms = self._as_remembered(name, task)
            return (await self.load(name, plan, terms))[0]
        except LoadCancelled:
            raise ModelUnloaded("The model was unloaded before it answered.") from None

    def _as_remembered(self, name: str, task: Task | None) -> tuple[Plan, Terms]:
        """As it was loaded last, so that nothing of what was asked then is lost."""

        async def by_name() -> EngineSpec:
            spec = await self._planner.plan_by_name(name)
            refuse_other_task(spec, task)
            return spec

        plan, terms = self._remembered.get(name, (by_name, DEFAULT_TERMS))
        # What only slept takes nobody's place when it wakes.
        keep_others = terms.keep_others or name in self._roster.asleep
        return plan, replace(terms, keep_others=keep_others, force=False, is_for_request=True)

    async def _carry_out(self, load: Load, plan: Plan) -> tuple[Engine, bool]:
        spec = await self._planned(load, plan)
        self.changed.publish()
        await self._until_startable(load, spec)
        while True:
            if (pending := self._placing.get(spec.model)) is not None:
                if not load.terms.is_for_request and not pending.is_like(load):
                    await asyncio.wait([pending.task])
                    continue
                engine, _ = await self._outcome(pending)
                self._keep_as_asked(engine, load.terms)
                return engine, False
            running = self._roster.get(spec.model)
            if running is None or running.is_gone:
                break
            if not load.terms.is_for_request and running.spec != spec:
                break
            was_ready = running.is_serving
            with suppress(EngineIsGone):
                await running.ensure_ready()
                self._keep_as_asked(running, load.terms)
                return running, was_ready
        self._placing[spec.model] = load
        try:
            engine = await self._place(load, spec)
            self._remembered[spec.model] = (plan, load.terms)
            return engine, False
        except EngineIsGone:
            raise LoadCancelled(
                "The load was ended by an unload, or by a forced load of another model."
            ) from None
        finally:
            del self._placing[spec.model]

    async def _planned(self, load: Load, plan: Plan) -> EngineSpec:
        earlier = self._loads[: self._loads.index(load)]
        try:
            load.spec = await plan()
        finally:
            load.planned.set()
        if load.terms.is_for_request:
            # A person's load that was there before comes first, though it took longer to look at.
            for other in earlier:
                await other.planned.wait()
        return load.spec

    async def _until_startable(self, load: Load, spec: EngineSpec) -> None:
        """Before its turn: a load that waits here keeps no other model waiting."""

        def tell(sentence: str) -> None:
            if load.waits_for != sentence:
                load.waits_for = sentence
                self.changed.publish()

        try:
            await worker_environment.until_there(spec, self._workplace.settings, tell)
        finally:
            tell("")

    async def _outcome(self, load: Load) -> tuple[Engine, bool]:
        """The engine, once it is ready. A caller that leaves doesn't end the load."""
        try:
            return await asyncio.shield(load.task)
        except asyncio.CancelledError:
            if load.task.cancelled():
                self._refuse_when_closing()
                raise LoadCancelled("The load was cancelled by an unload.") from None
            raise

    async def _place(self, load: Load, spec: EngineSpec) -> Engine:
        async with self._placement:
            self._refuse_when_closing()
            await self._inventory.refresh()
            placement = await self._room.find(spec, load.terms)
            previous = self._roster.get(spec.model)
            await self._room.make(placement)
            load.is_placed = True
            engine = self._latest = self._new_engine(placement.spec, load.terms, previous)
            self._roster.add(engine)
            await engine.ensure_ready()
            await self._replace(placement, load.terms, engine)
            await self._inventory.refresh()
            return engine

    async def _replace(self, placement: Placement, terms: Terms, engine: Engine) -> None:
        """Ends what `engine` takes the place of, but for what was asked while it was loading."""
        replaced = self._roster.named(placement.stop_after)
        asked = [o for o in replaced if self._roster.is_asked(o) and not terms.force]
        engine.warnings += [
            f"{other.spec.model} stays loaded beside it: it was asked meanwhile." for other in asked
        ]
        await self._roster.remove_all(other for other in replaced if other not in asked)

    def _new_engine(self, spec: EngineSpec, terms: Terms, previous: Engine | None) -> Engine:
        if not terms.is_for_request:
            # Who loads it again wants it tried at once, and as if for the first time.
            self._back_offs.pop(spec.model, None)
            previous = None
        return Engine(
            spec,
            str(next(self._numbers)),
            self._workplace,
            self._back_off_of(spec.model),
            self._keeping(terms),
            previous if previous is not None and previous.is_settled else None,
        )

    def _keeping(self, terms: Terms) -> Keeping:
        asked = terms.ttl_seconds
        default = self._workplace.settings.idle_unload_seconds
        ttl = default if asked is None else asked or None
        return Keeping(ttl_seconds=ttl, is_pinned=terms.is_pinned)

    def _keep_as_asked(self, engine: Engine, terms: Terms) -> None:
        if terms.is_for_request:
            return  # it wants an answer, and nothing of how long the model stays
        engine.keep(self._keeping(terms))
        model = engine.spec.model
        if model in self._remembered:
            self._remembered[model] = (self._remembered[model][0], terms)
        if self._roster.get(model) is engine:
            self._roster.make_latest(engine)
        self._engine_changed()

    def _back_off_of(self, model: str) -> BackOff:
        return self._back_offs.setdefault(model, BackOff(time.monotonic))

    def _engine_changed(self) -> None:
        self.changed.publish()
        self._roster.wake_idle_watch()

    def _forget(self, load: Load) -> None:
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
