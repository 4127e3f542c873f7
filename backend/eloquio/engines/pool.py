"""Which engines run: the only place that knows."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

import aiohttp

from eloquio.engines.broadcast import Broadcast
from eloquio.engines.engine import Engine, EngineIsStopping, Workplace
from eloquio.engines.kinds.llama_server import FlagReader
from eloquio.engines.run_folder import RunFolder
from eloquio.engines.spec import EngineSpec
from eloquio.errors import EngineBusy, LoadCancelled, NoModelLoaded, ShuttingDown
from eloquio.settings import Settings

# With the time that open replies get, everything has ended within five seconds.
_CLOSING_GRACE_SECONDS = 1.5


class Planner(Protocol):
    """Knows the models on disk."""

    async def id_of(self, model: str) -> str:
        """The public id of the model that a request names."""

    async def plan_by_name(self, model: str, pool: "Pool") -> EngineSpec:
        """The engine for a request that names a model which isn't loaded."""


@dataclass(frozen=True)
class _Load:
    spec: EngineSpec
    keep_others: bool
    force: bool
    task: "asyncio.Task[Engine]" = field(compare=False, repr=False)

    async def outcome(self) -> Engine:
        """The engine, once it is ready. A caller that leaves doesn't end the load."""
        try:
            return await asyncio.shield(self.task)
        except asyncio.CancelledError:
            if self.task.cancelled():
                raise LoadCancelled("The load was cancelled before it began.") from None
            raise


class Pool:
    """Loads, leases and unloads engines, one model per task unless asked to keep others.

    A load belongs to the pool, not to the request that asked for it: a caller that leaves stops
    nothing, a second one joins, and only an unload cancels.
    """

    def __init__(self, settings: Settings, planner: Planner) -> None:
        self.changed = Broadcast()
        self._run_folder = RunFolder.create(settings.home, settings.runtime_dir)
        self._workplace = Workplace(
            settings, self._run_folder.path, FlagReader(), self.changed.publish
        )
        self._planner = planner
        self._engines: dict[str, Engine] = {}
        self._loads: dict[str, _Load] = {}
        self._removals: dict[Engine, asyncio.Task[None]] = {}
        # Requests under way by model, from the moment they wait for it to load.
        self._claims: Counter[str] = Counter()
        # Placed one after the other, so that each sees the memory the one before really took.
        self._placement = asyncio.Lock()
        self._numbers = count()
        self._latest: Engine | None = None
        self._closing: asyncio.Task[None] | None = None

    # What runs -------------------------------------------------------------------------------

    @property
    def engines(self) -> Sequence[Engine]:
        """The engines there are, the one that was loaded last at the end."""
        return list(self._engines.values())

    @property
    def active(self) -> Engine | None:
        """The engine that answers a request which names no model: the one loaded last."""
        serving = [engine for engine in self._engines.values() if engine.is_serving]
        return serving[-1] if serving else None

    @property
    def latest(self) -> Engine | None:
        """The engine that was started last, whatever became of it."""
        return self._latest

    @property
    def queued(self) -> Sequence[str]:
        """The models whose load waits for its turn."""
        placed = None if self._latest is None else self._latest.spec
        return [model for model, load in self._loads.items() if load.spec is not placed]

    def is_ready(self) -> bool:
        return self.active is not None

    # Loading and unloading -------------------------------------------------------------------

    async def load(
        self, spec: EngineSpec, *, keep_others: bool = False, force: bool = False
    ) -> tuple[Engine, bool]:
        """The engine for `spec`, ready, and whether it was so before."""
        while True:
            self._refuse_when_closing()
            pending = self._loads.get(spec.model)
            if pending is None:
                break
            if (pending.spec, pending.keep_others, pending.force) == (spec, keep_others, force):
                return await pending.outcome(), False
            await asyncio.wait([pending.task])
        running = self._engines.get(spec.model)
        if running is not None and running.spec == spec and running.is_serving:
            return running, True
        task = asyncio.create_task(self._place(spec, keep_others, force))
        load = self._loads[spec.model] = _Load(spec, keep_others, force, task)
        task.add_done_callback(lambda _: self._forget(load))
        self.changed.publish()
        return await load.outcome(), False

    async def unload(self, model: str | None) -> str | None:
        """Ends the model's engine and its load, at whatever point; answers which, if any."""
        name = model if model is not None else self._only_model()
        load, engine = self._loads.get(name or ""), self._engines.get(name or "")
        if load is None and engine is None:
            return None
        if load is not None:
            load.task.cancel()
        if engine is not None:
            await self._remove(engine)
        if load is not None:
            await asyncio.wait([load.task])
        return name

    @asynccontextmanager
    async def lease(self, model: str | None) -> AsyncIterator[tuple[Engine, aiohttp.ClientSession]]:
        """A ready engine for one request, loaded on request if it isn't; busy until the end."""
        name = await self._name_of(model)
        self._claims[name] += 1
        try:
            while True:
                engine = await self._engine_for(name)
                try:
                    async with engine.serving() as client:
                        yield engine, client
                        return
                except EngineIsStopping:
                    # The request came during a stop: it waits for that, and gets a fresh process.
                    await engine.stop()
        finally:
            self._claims[name] -= 1

    async def close(self) -> None:
        """Ends every load and engine; final. Who asks again waits for the same end."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    # Inside ----------------------------------------------------------------------------------

    async def _close(self) -> None:
        self.changed.close()
        loads = [load.task for load in self._loads.values()]
        for load in loads:
            load.cancel()
        await asyncio.gather(*(engine.stop(_CLOSING_GRACE_SECONDS) for engine in self.engines))
        await asyncio.gather(*loads, *self._removals.values(), return_exceptions=True)
        self._engines.clear()
        await asyncio.to_thread(self._run_folder.remove)

    async def _name_of(self, model: str | None) -> str:
        self._refuse_when_closing()
        if model is None:
            if (active := self.active) is None:
                raise NoModelLoaded("No model is loaded, and the request names none.")
            return active.spec.model
        if model in self._engines or model in self._loads:
            return model
        return await self._planner.id_of(model)

    async def _engine_for(self, name: str) -> Engine:
        self._refuse_when_closing()
        if (engine := self._engines.get(name)) is not None and not engine.is_stopping:
            return engine
        if (pending := self._loads.get(name)) is not None:
            return await pending.outcome()
        engine, _ = await self.load(await self._planner.plan_by_name(name, self))
        return engine

    async def _place(self, spec: EngineSpec, keep_others: bool, force: bool) -> Engine:
        async with self._placement:
            self._refuse_when_closing()
            leaving = self._leaving(spec, keep_others, force)
            # What still fits stays until the new one is ready: if that fails, nothing is lost.
            staying = [e for e in leaving if spec.fits_beside and e.spec.model != spec.model]
            await self._remove_all(e for e in leaving if e not in staying or e.is_settled)
            engine = Engine(spec, str(next(self._numbers)), self._workplace)
            self._engines[spec.model] = self._latest = engine
            await engine.ensure_ready()
            await self._remove_all(e for e in staying if force or not self._is_asked(e))
            return engine

    def _leaving(self, spec: EngineSpec, keep_others: bool, force: bool) -> list[Engine]:
        """The engines that make room for `spec`; EngineBusy if one answers and isn't forced."""
        leaving = [
            engine
            for engine in self._engines.values()
            if engine.spec.model == spec.model
            or (engine.spec.task == spec.task and (engine.is_settled or not keep_others))
        ]
        # Its own model's requests wait for the very load that is placed here.
        others = [
            e for e in leaving if e.busy or (e.spec.model != spec.model and self._is_asked(e))
        ]
        if others and not force:
            names = ", ".join(engine.spec.model for engine in others)
            raise EngineBusy(f"Answers are under way on what would have to make room: {names}.")
        return leaving

    def _is_asked(self, engine: Engine) -> bool:
        """Whether a request is answered by it, or is about to be."""
        return self._claims[engine.spec.model] > 0 and not engine.is_settled

    async def _remove_all(self, engines: Iterable[Engine]) -> None:
        await asyncio.gather(*(self._remove(engine) for engine in engines))

    async def _remove(self, engine: Engine) -> None:
        """Ends it and forgets it, even when the caller is cancelled meanwhile."""
        if (removal := self._removals.get(engine)) is None:
            removal = self._removals[engine] = asyncio.create_task(self._stop_and_forget(engine))
            removal.add_done_callback(lambda _: self._removals.pop(engine))
        await asyncio.shield(removal)

    async def _stop_and_forget(self, engine: Engine) -> None:
        await engine.stop()
        if self._engines.get(engine.spec.model) is engine:
            del self._engines[engine.spec.model]
        self.changed.publish()

    def _forget(self, load: _Load) -> None:
        if self._loads.get(load.spec.model) is load:
            del self._loads[load.spec.model]
        if not load.task.cancelled():
            # Whoever asked may be gone; the engine's state still tells why it failed.
            load.task.exception()
        self.changed.publish()

    def _only_model(self) -> str | None:
        """The model meant by an unload that names none."""
        names = [*self._loads, *(name for name in self._engines if name not in self._loads)]
        return names[-1] if names else None

    def _refuse_when_closing(self) -> None:
        if self._closing is not None:
            raise ShuttingDown("Eloquio is shutting down.")
