"""The engines there are, who asks them, and how they leave."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import structlog

from eloquio.engines.engine import Engine
from eloquio.engines.eviction import Resident
from eloquio.engines.spec import Task

logger = structlog.get_logger(__name__)


class Roster:
    """At most one engine for each model."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._asleep: dict[str, None] = {}
        self._changed = changed
        self._engines: dict[str, Engine] = {}
        self._removals: dict[Engine, asyncio.Task[None]] = {}
        # Requests under way by model, from the moment they wait for it to load.
        self._claims: Counter[str] = Counter()
        self._idle_time_changed = asyncio.Event()

    @property
    def engines(self) -> Sequence[Engine]:
        """The one that was loaded last at the end."""
        return list(self._engines.values())

    @property
    def asleep(self) -> Sequence[str]:
        """The models that were ended because nobody asked for them; the last one at the end."""
        return list(self._asleep)

    def latest_for(self, task: Task | None) -> str | None:
        """The model loaded last, though it be starting again, kept from that, or asleep.

        One that is made for `task` is meant before any other.
        """
        there = [engine for engine in self.engines if engine.has_served] or list(self.engines)
        fitting = [engine for engine in there if task in (None, engine.spec.task)]
        if fitting:
            return fitting[-1].spec.model
        if self._asleep:
            return self.asleep[-1]
        return there[-1].spec.model if there else None

    def put_to_sleep(self, model: str) -> None:
        """It makes room, or was idle for long: a request that names it may wake it."""
        self._asleep.pop(model, None)
        self._asleep[model] = None

    def forget(self, model: str) -> None:
        """A person wants it gone: it doesn't only sleep."""
        self._asleep.pop(model, None)

    def get(self, model: str) -> Engine | None:
        return self._engines.get(model)

    def named(self, models: Iterable[str]) -> list[Engine]:
        return [engine for model in models if (engine := self.get(model)) is not None]

    def add(self, engine: Engine) -> None:
        self._engines[engine.spec.model] = engine
        self._asleep.pop(engine.spec.model, None)
        self.wake_idle_watch()

    @contextmanager
    def claim(self, model: str) -> Iterator[None]:
        """Counts a request for `model`, be it loaded or still to be."""
        self._claims[model] += 1
        try:
            yield
        finally:
            self._claims[model] -= 1
            self.wake_idle_watch()

    def is_asked(self, engine: Engine) -> bool:
        """Whether a request is answered by it, or is about to be."""
        return self._claims[engine.spec.model] > 0 and not engine.is_settled

    def residents(self, wanted: str) -> list[Resident]:
        """The engines as far as making room for the model `wanted` is concerned.

        One that is leaving is none any more, but for its own model.
        """
        return [
            self._resident(engine, wanted)
            for engine in self.engines
            if engine.spec.model == wanted or engine not in self._removals
        ]

    # How they leave --------------------------------------------------------------------------

    async def remove_all(self, engines: Iterable[Engine]) -> None:
        """As `remove`, and all are told before anything else can happen."""
        removals = [self._begin_to_remove(engine) for engine in engines]
        await self._wait_for(removals)

    async def remove(self, engine: Engine, *, is_unload: bool = False) -> None:
        """Ends it and forgets it, even when the caller is cancelled meanwhile."""
        engine.begin_to_stop(is_unload=is_unload)
        await self._wait_for([self._begin_to_remove(engine)])

    @property
    def is_anyone_leaving(self) -> bool:
        return bool(self._removals)

    async def removals(self) -> None:
        """Returns when those that are leaving now are gone."""
        await self._wait_for(self._removals.values())

    async def _wait_for(self, removals: Iterable[asyncio.Task[None]]) -> None:
        if waiting := list(removals):
            await asyncio.wait(waiting)

    async def close(self, grace_seconds: float) -> None:
        await asyncio.gather(*(engine.stop(grace_seconds) for engine in self.engines))
        await asyncio.gather(*self._removals.values(), return_exceptions=True)
        self._engines.clear()

    async def end_idle(self) -> None:
        """Ends each engine once its idle time is over. Goes on until it is cancelled."""
        while True:
            self._idle_time_changed.clear()
            left = {engine: self._idle_seconds_left(engine) for engine in self.engines}
            for engine in [engine for engine, seconds in left.items() if seconds == 0]:
                # Asked and told in one step: a request sees it serving, or already stopping.
                self._begin_to_remove(engine)
                self.put_to_sleep(engine.spec.model)
                logger.info("engine_idle", model=engine.spec.model)
            soonest = min((seconds for seconds in left.values() if seconds), default=None)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle_time_changed.wait(), soonest)

    def make_latest(self, engine: Engine) -> None:
        """It answers requests that name no model."""
        self._engines[engine.spec.model] = self._engines.pop(engine.spec.model)

    def wake_idle_watch(self) -> None:
        """Something happened that an idle time may depend on."""
        self._idle_time_changed.set()

    def _idle_seconds_left(self, engine: Engine) -> float | None:
        return None if self.is_asked(engine) else engine.ttl_left_seconds

    def _resident(self, engine: Engine, wanted: str) -> Resident:
        # Its own model's requests wait for the very load that is placed.
        is_own = engine.spec.model == wanted
        return Resident(
            model=engine.spec.model,
            task=engine.spec.task,
            size_bytes=engine.held_bytes(),
            last_used=engine.last_used,
            is_busy=self._is_busy(engine, is_own),
            is_loading=not engine.is_serving and not engine.is_settled,
            is_pinned=engine.keeping.is_pinned,
            is_settled=engine.is_settled,
        )

    def _is_busy(self, engine: Engine, is_own: bool) -> bool:
        if engine in self._removals:
            return False
        return engine.busy > 0 or (not is_own and self.is_asked(engine))

    def _begin_to_remove(self, engine: Engine) -> asyncio.Task[None]:
        if (removal := self._removals.get(engine)) is None:
            engine.begin_to_stop()
            removal = self._removals[engine] = asyncio.create_task(self._stop_and_forget(engine))
            removal.add_done_callback(lambda _: self._removals.pop(engine))
        return removal

    async def _stop_and_forget(self, engine: Engine) -> None:
        await engine.stop()
        if self._engines.get(engine.spec.model) is engine:
            del self._engines[engine.spec.model]
        self._changed()
