"""One started process: its output, its signs of life, its end."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from eloquio.engines.log import LogRing

_LAUNCH = Path(__file__).with_name("launch.py")
_KILL_TIMEOUT_SECONDS = 5.0
# A grandchild can hold the output pipe open after the engine itself is gone.
_DRAIN_TIMEOUT_SECONDS = 1.0


class EngineProcess:
    """A child in a session of its own that dies with this process, even when that is killed."""

    def __init__(self, process: asyncio.subprocess.Process, log: LogRing) -> None:
        self.log = log
        self._process = process
        self._reader = asyncio.create_task(self._read_output())
        self._is_swept = False

    @classmethod
    async def start(
        cls, command: Sequence[str], environment: Mapping[str, str], log: LogRing
    ) -> "EngineProcess":
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(_LAUNCH),
            str(os.getpid()),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
        return cls(process, log)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        """The exit status, once the process has ended and its last words are read."""
        status = await self._process.wait()
        if not self._is_swept:
            # At once and only once: what it forked must not go on holding its socket or memory,
            # and later the group's number may be somebody else's.
            self._is_swept = True
            self._signal_group(signal.SIGKILL)
        await asyncio.wait([self._reader], timeout=_DRAIN_TIMEOUT_SECONDS)
        return status

    async def stop(self, grace_seconds: float) -> int:
        """SIGTERM to the group, SIGKILL after `grace_seconds`; returns when it is gone."""
        ended = asyncio.ensure_future(self._process.wait())
        if self._process.returncode is None:
            self._signal_group(signal.SIGTERM)
            await asyncio.wait([ended], timeout=grace_seconds)
        if self._process.returncode is None:
            self._signal_group(signal.SIGKILL)
        async with asyncio.timeout(_KILL_TIMEOUT_SECONDS):
            status = await self.wait()
        self._reader.cancel()
        return status

    def resident_bytes(self) -> int | None:
        """Main memory the engine holds now; None when it is gone."""
        with suppress(psutil.Error):
            return int(self._engine().memory_info().rss)
        return None

    def signs_of_life(self) -> tuple[int, ...]:
        """Numbers that change while the engine does anything: lines, CPU, memory, bytes read."""
        try:
            engine = self._engine()
            with engine.oneshot():
                times = engine.cpu_times()
                cpu_centiseconds = int((times.user + times.system) * 100)
                resident = engine.memory_info().rss
            return (self.log.line_count, cpu_centiseconds, resident, _bytes_read(engine))
        except psutil.Error:
            return (self.log.line_count,)

    def _engine(self) -> psutil.Process:
        started = psutil.Process(self._process.pid)
        if sys.platform == "linux":
            return started
        # Elsewhere the engine is the child of the watcher that binds it to our life.
        return next(iter(started.children()), started)

    async def _read_output(self) -> None:
        assert self._process.stdout is not None
        while output := await self._process.stdout.read(65536):
            self.log.feed(output)
        self.log.close()

    def _signal_group(self, number: signal.Signals) -> None:
        # To the group: an engine may have forked a helper that holds its socket or its memory.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _bytes_read(process: psutil.Process) -> int:
    # Not every system tells; Linux also counts what came out of its cache.
    with suppress(psutil.Error, AttributeError):
        counters = process.io_counters()
        return int(getattr(counters, "read_chars", counters.read_bytes))
    return 0
