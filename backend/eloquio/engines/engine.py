"""One engine, from its start to its end. Its own task is the only writer of its state."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from weakref import WeakKeyDictionary

import aiohttp
import structlog

from eloquio.engines import exits, readiness
from eloquio.engines.back_off import BackOff
from eloquio.engines.facts import Facts
from eloquio.engines.log import LogRing
from eloquio.engines.process import EngineProcess
from eloquio.engines.readiness import WeightsRead
from eloquio.engines.spawner import Spawned, Spawner, Workplace
from eloquio.engines.spec import EngineSpec, Keeping
from eloquio.engines.state import EngineState, Failed, Phase, Ready, Starting, Stopped, Stopping
from eloquio.engines.turns import Turns, refuse_beyond
from eloquio.errors import (
    EloquioError,
    EngineStartFailed,
    EngineUnreachable,
    ModelUnloaded,
    ShuttingDown,
    Unexpected,
)

# From a broken connection to the process's end being known.
_CRASH_TIMEOUT_SECONDS = 3.0
# From a broken answer to an end that explains it.
_LAST_WORDS_SECONDS = 1.0

_Life = asyncio.Task[EloquioError | None]

logger = structlog.get_logger(__name__)


class EngineIsGone(Exception):
    """It has ended, or was asked to: its owner starts another."""


class Engine:
    """Callers ask for outcomes: `ensure_ready`, `serving`, `stop`. None branches on `state`."""

    def __init__(
        self,
        spec: EngineSpec,
        name: str,
        workplace: Workplace,
        back_off: BackOff,
        keeping: Keeping,
        predecessor: "Engine | None" = None,
    ) -> None:
        """`predecessor` failed, and this one goes on in its place with what was learned."""
        self.spec = spec
        self.keeping = keeping
        self.log = LogRing()
        self.facts: Facts | None = None
        self.warnings: list[str] = list(spec.warnings)
        self.busy = 0
        self.waiting = 0
        self.starts: int = predecessor.starts if predecessor else 0
        self.last_error: EloquioError | None = predecessor.last_error if predecessor else None
        self.state: EngineState = Stopped()
        self._workplace = workplace
        self._grace_seconds = workplace.settings.stop_grace_seconds
        self._process: EngineProcess | None = None
        self._client: aiohttp.ClientSession | None = None
        self._turns: Turns | None = None
        self._life: _Life | None = None
        self._ready: asyncio.Future[None] | None = None
        self._life_behind: WeakKeyDictionary[aiohttp.ClientSession, _Life] = WeakKeyDictionary()
        self._is_stopping = False
        self._is_unloaded = False
        self._is_shutting_down = False
        # Its life has left service, and cleans up or is about to.
        self._is_ending = False
        self._ready_since: float | None = None
        self._last_used = time.monotonic()
        self._back_off = back_off
        self._spawner: Spawner = Spawner(
            spec, workplace, name, predecessor._spawner.without if predecessor else frozenset()
        )

    # What callers ask for --------------------------------------------------------------------

    async def ensure_ready(self) -> None:
        """Returns when it serves; raises why it doesn't. A caller that leaves stops nothing."""
        if self._life is None and not self._is_stopping:
            self._begin()
        while self._has_left_service and not self.is_gone:
            assert self._life is not None
            await asyncio.wait([self._life])
        if self.is_gone:
            raise EngineIsGone
        assert self._ready is not None
        self.waiting += 1
        try:
            await asyncio.shield(self._ready)
        finally:
            self.waiting -= 1

    @asynccontextmanager
    async def serving(self, slots: int = 1) -> AsyncIterator[aiohttp.ClientSession]:
        """A client for one request, which counts as busy until the block ends.

        It waits for its turn at the engine's slots, if it needs some. QueueFull.
        """
        if slots and not self.is_serving:
            # It is still starting: who waits for that waits in no queue yet.
            refuse_beyond(self._workplace.settings.max_queued, self.waiting)
        client, turns, taken = await self._turn(slots)
        self.busy += 1
        try:
            yield client
        finally:
            self.busy -= 1
            self._last_used = time.monotonic()
            turns.give_back(taken)

    async def _turn(self, slots: int) -> tuple[aiohttp.ClientSession, Turns, int]:
        while True:
            await self.ensure_ready()
            client, turns = self._client, self._turns
            if client is None or turns is None or self._has_left_service:
                continue
            taken = min(slots, turns.slots)
            self.waiting += 1
            try:
                has_turn = await turns.take(taken)
            finally:
                self.waiting -= 1
            if has_turn and not self._has_left_service:
                return client, turns, taken

    def keep(self, keeping: Keeping) -> None:
        """From now on it stays loaded by other rules; its idle time begins anew."""
        self.keeping = keeping
        self._last_used = time.monotonic()

    def begin_to_stop(self, grace_seconds: float | None = None, *, is_unload: bool = False) -> None:
        """From now on it serves nobody new; `stop` waits for the end. Final.

        `is_unload` says that a person wants the model gone, and not only this process of it.
        """
        self._is_stopping = True
        self._is_unloaded |= is_unload
        if grace_seconds is not None:
            self._is_shutting_down = True
            self._grace_seconds = min(self._grace_seconds, grace_seconds)
        if self._life is not None and not self._is_ending:
            # Once only: what it does after that, it does to the end.
            self._is_ending = True
            self._close_turns()
            self._life.cancel()

    async def stop(self, grace_seconds: float | None = None) -> None:
        """Returns when the process is gone, from whatever point of its life; final.

        `grace_seconds` bounds the time from SIGTERM to SIGKILL below the settings' own: with it,
        the whole backend is being shut down.
        """
        self.begin_to_stop(grace_seconds)
        if self._life is None:
            return
        if grace_seconds is not None and self._process is not None:
            # It may be waiting already for an end that was given more time.
            with suppress(TimeoutError):
                await self._process.stop(grace_seconds)
        await asyncio.wait([self._life])
        if self._ready is not None and not self._ready.done():
            # Its task was cancelled before its first step.
            self._settle(self._ready, None)

    async def cause_of_loss(self, client: aiohttp.ClientSession) -> EloquioError:
        """Why a connection of `client` broke: the crash, once it is known, or that nobody knows."""
        if (life := self._life_behind.get(client)) is not None:
            await asyncio.wait([life], timeout=_CRASH_TIMEOUT_SECONDS)
            if life.done() and not life.cancelled() and (error := life.result()) is not None:
                return error
        if self._is_shutting_down:
            return ShuttingDown("Eloquio was shut down during the answer.")
        if self._is_stopping:
            return ModelUnloaded("The model was unloaded during the answer.")
        return EngineUnreachable("The connection to the engine broke.")

    # What its owner decides by, and a display shows ------------------------------------------

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def uptime_seconds(self) -> float | None:
        if self._ready_since is None or not self.is_serving:
            return None
        return time.monotonic() - self._ready_since

    @property
    def restarts(self) -> int:
        return max(0, self.starts - 1)

    @property
    def is_settled(self) -> bool:
        """Whether nothing of it runs."""
        return self._life is None or self._life.done()

    @property
    def is_serving(self) -> bool:
        return isinstance(self.state, Ready) and not self._is_ending

    @property
    def has_served(self) -> bool:
        return self._ready_since is not None or self.starts > 1

    @property
    def is_gone(self) -> bool:
        """Whether it will never serve again."""
        return self._is_stopping or (self._life is not None and self._life.done())

    @property
    def is_unloaded(self) -> bool:
        return self._is_unloaded

    @property
    def last_used(self) -> float:
        """When its last request ended, or it was loaded, by the monotonic clock."""
        return self._last_used

    @property
    def ttl_left_seconds(self) -> float | None:
        """Until it is unloaded if nobody asks; None while that can't happen."""
        ttl = self.keeping.ttl_seconds
        if ttl is None or self.keeping.is_pinned or not self.is_serving:
            return None
        if self.busy or self.waiting:
            return ttl
        return max(0.0, self._last_used + ttl - time.monotonic())

    def resident_bytes(self) -> int | None:
        return None if self._process is None else self._process.resident_bytes()

    def held_bytes(self) -> int:
        """What its end gives back: what it was planned with, or what it has taken beyond."""
        return 0 if self.is_settled else max(self.spec.memory.total_bytes, self._taken_bytes())

    def promised_bytes(self) -> int:
        """What it was planned with and the system still counts as free."""
        return self.held_bytes() - self._taken_bytes()

    def _taken_bytes(self) -> int:
        if self.spec.memory.device != "cpu" and self.is_serving:
            # An accelerator's driver counts what it holds, once it is loaded.
            return self.spec.memory.total_bytes
        taken = None if self._process is None else self._process.anonymous_bytes()
        return taken or 0

    @property
    def _has_left_service(self) -> bool:
        """Whether it ended after it had served, be that known to its task or not yet."""
        has_served = self._ready is not None and self._ready.done()
        has_ended = self._process is not None and self._process.returncode is not None
        return self._is_ending or (has_served and has_ended)

    # Its life: everything below runs in its own task -----------------------------------------

    def _begin(self) -> None:
        self._ready = asyncio.get_running_loop().create_future()
        # Nobody may be waiting for it: a failure is then told by `state`, not by a warning.
        self._ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        self._is_ending = False
        self._ready_since = None
        self.starts += 1
        self._become(Starting(total_bytes=self.spec.memory.weights_bytes))
        self._life = asyncio.create_task(self._live(self._ready), name=f"engine {self.spec.model}")

    async def _live(self, ready: asyncio.Future[None]) -> EloquioError | None:
        """To its end; answers why it failed, if it did."""
        error: EloquioError | None = None
        try:
            process = await self._start()
            ready.set_result(None)
            status = await process.wait()
            error = await asyncio.to_thread(exits.crash, status, self.log.lines)
            await self._spawner.concede(status, self.log.lines)
        except asyncio.CancelledError:
            # The stop is carried out here, by the clean-up below, which has time-outs of its own.
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
        except EloquioError as failure:
            error = failure
        except Exception:
            logger.exception("engine_task_failed", model=self.spec.model)
            error = Unexpected("The engine's supervisor failed.")
        self._is_ending = True
        self._close_turns()
        try:
            await self._clean_up()
        except Exception:
            logger.exception("engine_clean_up_failed", model=self.spec.model)
        self._settle(ready, error)
        return error

    def _close_turns(self) -> None:
        if self._turns is not None:
            self._turns.close()
            self._turns = None

    def _settle(self, ready: asyncio.Future[None], error: EloquioError | None) -> None:
        outcome: Exception
        if error is None:
            self._become(Stopped())
            is_last = self._is_shutting_down
            outcome = ShuttingDown("Eloquio is shutting down.") if is_last else EngineIsGone()
        else:
            outcome = error
            self.last_error = error
            since = self._ready_since
            served = None if since is None else time.monotonic() - since
            self._back_off.remember(error, served)
            logger.warning("engine_failed", model=self.spec.model, code=error.code)
            self._become(Failed(error=error.body()["error"]))
            if served is not None and not self._back_off.wait_seconds and not self._is_stopping:
                # By itself only the first time: a further crash waits for a request.
                self._begin()
        if not ready.done():
            ready.set_exception(outcome)

    async def _start(self) -> EngineProcess:
        started = time.monotonic()
        is_second_hearing = False
        while True:
            self.log = LogRing(hidden=self._spawner.hidden_folders())
            spawned = await self._spawner.spawn(self.log)
            process, client = self._process, self._client = spawned.process, spawned.client
            life = asyncio.current_task()
            assert life is not None
            self._life_behind[client] = life
            async for read in readiness.until_healthy(client, process, self._workplace.settings):
                self._show_progress(process, read, time.monotonic() - started)
            if process.returncode is None:
                break
            status = await process.wait()
            if not await self._spawner.concede(status, self.log.lines):
                if is_second_hearing or status < 0 or exits.tells_why(self.log.lines):
                    raise await self._start_failure(status)
                # llama.cpp's logger loses its last lines now and then: it may say why this time.
                is_second_hearing = True
            await self._clean_up()
        self.facts = await self._read_facts(spawned)
        self._turns = Turns(self.facts.slots, self._workplace.settings.max_queued)
        self.warnings = self._spawner.warnings(self.facts, self.log.lines)
        self._ready_since = self._last_used = time.monotonic()
        seconds = round(self._ready_since - started, 3)
        self._become(Ready(pid=process.pid, load_seconds=seconds))
        logger.info("engine_ready", model=self.spec.model, pid=process.pid, seconds=seconds)
        return process

    async def _read_facts(self, spawned: Spawned) -> Facts:
        process = spawned.process
        try:
            return await readiness.facts(spawned.client, process, spawned.address, self.spec.model)
        except EngineStartFailed:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    # It couldn't tell anything because it had ended.
                    raise await self._start_failure(await process.wait()) from None
            raise

    async def _start_failure(self, status: int) -> EloquioError:
        # In a thread, as is all that searches what an engine wrote: it may be a lot.
        return await asyncio.to_thread(self._spawner.start_failure, status, self.log.lines)

    def _show_progress(
        self, process: EngineProcess, read: WeightsRead | None, elapsed_seconds: float
    ) -> None:
        total = read.total_bytes if read else self.spec.memory.weights_bytes
        if read is not None:
            loaded = read.loaded_bytes
        elif self.spec.kind == "worker":
            loaded = 0  # until it says so: at first it holds libraries only
        else:
            # The weights are mapped or read into this process: what it holds says how far it is.
            loaded = min(process.resident_bytes() or 0, total)
        phase: Phase = "warming" if total and loaded >= total else "starting"
        self._become(
            Starting(
                phase=phase,
                loaded_bytes=loaded,
                total_bytes=total,
                elapsed_seconds=round(elapsed_seconds, 2),
            )
        )

    async def _clean_up(self) -> None:
        try:
            if self._process is not None:
                if self._process.returncode is None:
                    self._become(Stopping())
                status = await self._process.stop(self._grace_seconds)
                logger.info("engine_ended", model=self.spec.model, status=exits.ending(status))
        finally:
            client, self._client, self._process, self.facts = self._client, None, None, None
            if client is not None:
                await client.close()
            await asyncio.to_thread(self._spawner.remove_files)

    def _become(self, state: EngineState) -> None:
        self.state = state
        self._workplace.changed()
