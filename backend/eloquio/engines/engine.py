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

from eloquio.engines import exits
from eloquio.engines.address import Address, new_address
from eloquio.engines.kinds import llama_server
from eloquio.engines.kinds.llama_server import Facts, FlagReader
from eloquio.engines.log import LogRing
from eloquio.engines.process import EngineProcess
from eloquio.engines.spec import EngineSpec
from eloquio.engines.state import EngineState, Failed, Phase, Ready, Starting, Stopped, Stopping
from eloquio.errors import (
    EloquioError,
    EngineNoProgress,
    EngineSocketFailed,
    EngineStartFailed,
    EngineUnavailable,
    EngineUnreachable,
    LoadCancelled,
    ModelUnloaded,
    ShuttingDown,
    Unexpected,
)
from eloquio.settings import Settings

_POLL_SECONDS = 0.05
# From a broken connection to the process's end being known.
_CRASH_TIMEOUT_SECONDS = 3.0
_PROBE = aiohttp.ClientTimeout(total=5.0)
_BACK_OFF_SECONDS = (5.0, 10.0, 20.0, 40.0, 60.0)
# A crash after so long in service is a new one, not the last one's echo.
_HEALTHY_SECONDS = 60.0

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

    def __init__(self, spec: EngineSpec, name: str, workplace: Workplace) -> None:
        self.spec = spec
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
        self._failures = 0
        self._not_before = 0.0

    # What callers ask for --------------------------------------------------------------------

    async def ensure_ready(self) -> None:
        """Returns when it serves; raises why it doesn't. A caller that leaves stops nothing."""
        while not self._is_stopping and self._is_over and not self.is_settled:
            assert self._life is not None
            await asyncio.wait([self._life])
        if self._is_stopping:
            raise EngineIsStopping
        if self.is_settled:
            self._refuse_during_back_off()
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

    async def stop(self, grace_seconds: float | None = None) -> None:
        """Returns when the process is gone, from whatever point of its life; final.

        `grace_seconds` bounds the time from SIGTERM to SIGKILL below the settings' own: with it,
        the whole backend is being shut down.
        """
        self._is_stopping = True
        if grace_seconds is not None:
            self._is_shutting_down = True
            self._grace_seconds = min(self._grace_seconds, grace_seconds)
        if self._life is None:
            return
        if not self._is_ending:
            # Once only: what it does after that, it does to the end.
            self._is_ending = True
            self._life.cancel()
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

    def resident_bytes(self) -> int | None:
        return None if self._process is None else self._process.resident_bytes()

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
        self._life = asyncio.create_task(self._live(self._ready), name=f"engine {self.spec.model}")

    async def _live(self, ready: asyncio.Future[None]) -> None:
        error: EloquioError | None = None
        try:
            process = await self._start()
            ready.set_result(None)
            status = await process.wait()
            error = exits.crash(status, self.log.lines)
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
                else LoadCancelled("The load was cancelled by an unload.")
            )
        else:
            self.last_error = error
            self._remember_failure()
            logger.warning("engine_failed", model=self.spec.model, code=error.code)
            self._become(Failed(error=error.body()["error"]))
        if not ready.done():
            ready.set_exception(error)

    async def _start(self) -> EngineProcess:
        started = self._workplace.clock()
        self._become(Starting(total_bytes=self.spec.memory.weights_bytes))
        self.log = LogRing(hidden=(self.spec.model_path.parent, self._workplace.settings.home))
        binary = await asyncio.to_thread(llama_server.locate, self._workplace.settings)
        flags = await self._workplace.flag_reader.flags(binary)
        address = await asyncio.to_thread(new_address, self._workplace.folder, self._name)
        files = self._workplace.folder / self._name
        try:
            command = await asyncio.to_thread(
                llama_server.command, self.spec, binary, flags, address, files
            )
            environment = llama_server.environment(binary, os.environ)
            process = await EngineProcess.start(command, environment, self.log)
        except OSError as failure:
            raise EngineStartFailed(
                f"The engine could not be started: {failure.strerror}."
            ) from failure
        self._process = process
        self._client = address.client()
        await self._wait_until_healthy(self._client, process, started)
        self.facts = await self._read_facts(self._client, address)
        self.warnings = [*self.spec.warnings, *llama_server.differences(self.spec, self.facts)]
        self._ready_since = self._workplace.clock()
        seconds = round(self._ready_since - started, 3)
        self._become(Ready(pid=process.pid, load_seconds=seconds))
        logger.info("engine_ready", model=self.spec.model, pid=process.pid, seconds=seconds)
        return process

    async def _wait_until_healthy(
        self, client: aiohttp.ClientSession, process: EngineProcess, started: float
    ) -> None:
        """Bounded by inactivity, not by time: a load that moves may take hours."""
        clock = self._workplace.clock
        limit = self._workplace.settings.start_inactivity_seconds
        last_signs, last_moved = process.signs_of_life(), clock()
        while process.returncode is None:
            if await _is_healthy(client):
                return
            signs = process.signs_of_life()
            if signs != last_signs:
                last_signs, last_moved = signs, clock()
            elif clock() - last_moved > limit:
                raise EngineNoProgress(
                    f"The engine showed no sign of life for {limit:g} s while it was starting.",
                    evidence=exits.last_lines(self.log.lines),
                )
            self._show_progress(process, clock() - started)
            await asyncio.sleep(_POLL_SECONDS)
        status = await process.wait()
        raise exits.start_failure(status, self.log.lines)

    async def _read_facts(self, client: aiohttp.ClientSession, address: Address) -> Facts:
        """Asks the engine what it made of its options, and makes sure that it is ours."""
        try:
            async with client.get("/props", timeout=_PROBE) as reply:
                properties = await reply.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as failure:
            raise EngineStartFailed("The engine started but can't describe itself.") from failure
        if not isinstance(properties, dict):
            raise EngineStartFailed("The engine started but can't describe itself.")
        # Nobody else can listen on a socket in our own folder; on a port, anybody can.
        alias = properties.get("model_alias", self.spec.model if address.socket_path else None)
        if alias != self.spec.model:
            raise EngineSocketFailed("Another server answers in the engine's place.")
        return llama_server.facts(properties)

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

    # Back-off --------------------------------------------------------------------------------

    def _remember_failure(self) -> None:
        now = self._workplace.clock()
        served = None if self._ready_since is None else now - self._ready_since
        self._failures = 1 if (served or 0) > _HEALTHY_SECONDS else self._failures + 1
        self._not_before = now + back_off_seconds(self._failures, served)

    def _refuse_during_back_off(self) -> None:
        wait = self._not_before - self._workplace.clock()
        if wait > 0 and self.last_error is not None:
            raise EngineUnavailable(
                f"The model failed before: {self.last_error.message}",
                evidence=self.last_error.evidence,
                next_step=self.last_error.next_step,
                retry_after_seconds=max(1, round(wait)),
            )


def back_off_seconds(failures: int, served_seconds: float | None) -> float:
    """How long the next start on request waits after `failures` in a row.

    `served_seconds` is None when it failed before it served. The first crash of an engine that had
    served is answered by a restart at once.
    """
    if failures == 1 and served_seconds is not None:
        return 0.0
    return _BACK_OFF_SECONDS[min(failures, len(_BACK_OFF_SECONDS)) - 1]


async def _is_healthy(client: aiohttp.ClientSession) -> bool:
    try:
        async with client.get("/health", timeout=_PROBE) as reply:
            return reply.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False
