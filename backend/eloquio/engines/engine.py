"""One engine, from its start to its end. Its own task is the only writer of its state."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import structlog

from eloquio.engines import exits, readiness
from eloquio.engines.address import Address, new_address
from eloquio.engines.back_off import BackOff
from eloquio.engines.kinds import llama_server
from eloquio.engines.kinds.blame import Blame, blamed
from eloquio.engines.kinds.llama_server import Facts, FlagReader, Option
from eloquio.engines.log import LogRing
from eloquio.engines.process import EngineProcess
from eloquio.engines.spec import EngineSpec, Keeping
from eloquio.engines.state import EngineState, Failed, Phase, Ready, Starting, Stopped, Stopping
from eloquio.errors import (
    EloquioError,
    EngineStartFailed,
    EngineUnreachable,
    LoadCancelled,
    ModelUnloaded,
    ShuttingDown,
    Unexpected,
)
from eloquio.settings import Settings

# From a broken connection to the process's end being known.
_CRASH_TIMEOUT_SECONDS = 3.0

logger = structlog.get_logger(__name__)


class EngineIsStopping(Exception):
    """It was asked to serve after it was asked to stop; its owner starts another."""


@dataclass(frozen=True)
class Workplace:
    """What all engines of one backend share."""

    settings: Settings
    folder: Path
    flag_reader: FlagReader
    changed: Callable[[], None]
    clock: Callable[[], float] = time.monotonic


class Engine:
    """Callers ask for outcomes: `ensure_ready`, `serving`, `stop`. None branches on `state`."""

    def __init__(
        self,
        spec: EngineSpec,
        name: str,
        workplace: Workplace,
        back_off: BackOff,
        keeping: Keeping,
    ) -> None:
        self.spec = spec
        self.keeping = keeping
        self.log = LogRing()
        self.facts: Facts | None = None
        self.warnings: list[str] = list(spec.warnings)
        self.busy = 0
        self.waiting = 0
        self.starts = 0
        self.last_error: EloquioError | None = None
        self.state: EngineState = Stopped()
        self._name = name
        self._workplace = workplace
        self._grace_seconds = workplace.settings.stop_grace_seconds
        self._process: EngineProcess | None = None
        self._client: aiohttp.ClientSession | None = None
        self._life: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._is_stopping = False
        self._is_shutting_down = False
        # Its life has left service, and cleans up or is about to.
        self._is_ending = False
        self._ready_since: float | None = None
        self._last_used = workplace.clock()
        self._back_off = back_off
        # What it failed on before, and does without since.
        self._without: frozenset[Blame] = frozenset()
        self._options: list[Option] = []
        self._flags: frozenset[str] = frozenset()

    # What callers ask for --------------------------------------------------------------------

    async def ensure_ready(self) -> None:
        """Returns when it serves; raises why it doesn't. A caller that leaves stops nothing."""
        while not self._is_stopping and self._is_over and not self.is_settled:
            assert self._life is not None
            await asyncio.wait([self._life])
        if self._is_stopping:
            raise EngineIsStopping
        if self.is_settled:
            self._back_off.refuse()
            self._begin()
        assert self._ready is not None
        self.waiting += 1
        try:
            await asyncio.shield(self._ready)
        finally:
            self.waiting -= 1

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[aiohttp.ClientSession]:
        """A client for one request, which counts as busy until the block ends."""
        while True:
            await self.ensure_ready()
            if self._client is not None and not self._is_over:
                break
        self.busy += 1
        try:
            yield self._client
        finally:
            self.busy -= 1
            self._last_used = self._workplace.clock()

    def keep(self, keeping: Keeping) -> None:
        """From now on it stays loaded by other rules; its idle time begins anew."""
        self.keeping = keeping
        self._last_used = self._workplace.clock()

    def begin_to_stop(self, grace_seconds: float | None = None) -> None:
        """From now on it serves nobody new; `stop` waits for the end. Final."""
        self._is_stopping = True
        if grace_seconds is not None:
            self._is_shutting_down = True
            self._grace_seconds = min(self._grace_seconds, grace_seconds)
        if self._life is not None and not self._is_ending:
            # Once only: what it does after that, it does to the end.
            self._is_ending = True
            self._life.cancel()

    async def stop(self, grace_seconds: float | None = None) -> None:
        """Returns when the process is gone, from whatever point of its life; final.

        `grace_seconds` bounds the time from SIGTERM to SIGKILL below the settings' own: with it,
        the whole backend is being shut down.
        """
        self.begin_to_stop(grace_seconds)
        if self._life is None:
            return
        await asyncio.wait([self._life])
        if self._ready is not None and not self._ready.done():
            # Its task was cancelled before its first step.
            self._settle(self._ready, None)

    async def cause_of_loss(self) -> EloquioError:
        """Why a connection to it broke: the crash, once that is known, or that nobody knows."""
        life = self._life
        if life is not None:
            await asyncio.wait([life], timeout=_CRASH_TIMEOUT_SECONDS)
        if self._is_shutting_down:
            return ShuttingDown("Eloquio was shut down during the answer.")
        if self._is_stopping:
            return ModelUnloaded("The model was unloaded during the answer.")
        if life is not None and life.done() and self.last_error is not None:
            return self.last_error
        return EngineUnreachable("The connection to the engine broke.")

    # What may inform a display ---------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def uptime_seconds(self) -> float | None:
        if self._ready_since is None or not self.is_serving:
            return None
        return self._workplace.clock() - self._ready_since

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
    def is_stopping(self) -> bool:
        return self._is_stopping

    @property
    def last_used(self) -> float:
        """When its last request ended, or it was loaded, by the workplace's clock."""
        return self._last_used

    @property
    def ttl_left_seconds(self) -> float | None:
        """Until it is unloaded if nobody asks; None while that can't happen."""
        ttl = self.keeping.ttl_seconds
        if ttl is None or self.keeping.is_pinned or not self.is_serving:
            return None
        if self.busy or self.waiting:
            return ttl
        return max(0.0, self._last_used + ttl - self._workplace.clock())

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
    def _is_over(self) -> bool:
        """Whether it has left service, be it known to its task or not yet."""
        has_ended = self._process is not None and self._process.returncode is not None
        return self._is_ending or has_ended

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

    async def _live(self, ready: asyncio.Future[None]) -> None:
        error: EloquioError | None = None
        try:
            process = await self._start()
            ready.set_result(None)
            status = await process.wait()
            error = exits.crash(status, self.log.lines)
            self._concede(status)
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
        try:
            await self._clean_up()
        except Exception:
            logger.exception("engine_clean_up_failed", model=self.spec.model)
        self._settle(ready, error)

    def _settle(self, ready: asyncio.Future[None], error: EloquioError | None) -> None:
        if error is None:
            self._become(Stopped())
            error = (
                ShuttingDown("Eloquio is shutting down.")
                if self._is_shutting_down
                else LoadCancelled(
                    "The load was ended by an unload, or by a forced load of another model."
                )
            )
        else:
            self.last_error = error
            since = self._ready_since
            served = None if since is None else self._workplace.clock() - since
            self._back_off.remember(error, served)
            logger.warning("engine_failed", model=self.spec.model, code=error.code)
            self._become(Failed(error=error.body()["error"]))
            if served is not None and not self._back_off.wait_seconds and not self._is_stopping:
                # By itself only the first time: a further crash waits for a request.
                self._begin()
        if not ready.done():
            ready.set_exception(error)

    async def _start(self) -> EngineProcess:
        started = self._workplace.clock()
        while True:
            hidden = (self.spec.model_path.parent, self._workplace.settings.home)
            self.log = LogRing(hidden=hidden)
            process, client, address = await self._spawn()
            async for _ in readiness.until_healthy(client, process, self._workplace.settings):
                self._show_progress(process, self._workplace.clock() - started)
            if process.returncode is None:
                break
            status = await process.wait()
            if not self._concede(status):
                raise exits.start_failure(status, self.log.lines)
            await self._clean_up()
        self.facts = await readiness.facts(client, process, address, self.spec.model)
        found = llama_server.differences(self.spec, self.facts, self.log.lines, self._without)
        self.warnings = [*self.spec.warnings, *found]
        self._ready_since = self._last_used = self._workplace.clock()
        seconds = round(self._ready_since - started, 3)
        self._become(Ready(pid=process.pid, load_seconds=seconds))
        logger.info("engine_ready", model=self.spec.model, pid=process.pid, seconds=seconds)
        return process

    async def _spawn(self) -> tuple[EngineProcess, aiohttp.ClientSession, Address]:
        binary = await asyncio.to_thread(llama_server.locate, self._workplace.settings)
        flags = self._flags = await self._workplace.flag_reader.flags(binary)
        address = await asyncio.to_thread(new_address, self._workplace.folder, self._name)
        files = self._workplace.folder / self._name
        try:
            self._options = await asyncio.to_thread(
                llama_server.options, self.spec, flags, address, files, self._without
            )
            command = llama_server.command(self.spec, binary, self._options)
            environment = llama_server.environment(binary, os.environ)
            pid_file = files.with_suffix(".pid")
            process = await EngineProcess.start(command, environment, self.log, pid_file)
        except OSError as failure:
            raise EngineStartFailed(
                f"The engine could not be started: {failure.strerror}."
            ) from failure
        self._process = process
        self._client = address.client()
        return process, self._client, address

    def _concede(self, status: int) -> bool:
        """Whether it ended for a part that it can do without, which it does from now on."""
        blame = blamed(self.log.lines, status, self._options)
        if blame is None or blame in self._without:
            return False
        if not llama_server.can_do_without(self.spec, blame, self._flags):
            return False
        self._without |= {blame}
        logger.warning("engine_goes_without", model=self.spec.model, part=blame.option)
        return True

    def _show_progress(self, process: EngineProcess, elapsed_seconds: float) -> None:
        total = self.spec.memory.weights_bytes
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

    def _become(self, state: EngineState) -> None:
        self.state = state
        self._workplace.changed()
