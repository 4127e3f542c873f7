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
        self._usage = psutil.Process(process.pid) if process.returncode is None else None

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
        # What it forked must not go on holding the socket or the memory.
        self._signal_group(signal.SIGKILL)
        await asyncio.wait([self._reader], timeout=_DRAIN_TIMEOUT_SECONDS)
        return status

    async def stop(self, grace_seconds: float) -> int:
        """SIGTERM to the group, SIGKILL after `grace_seconds`; returns when it is gone."""
        if self._process.returncode is None:
            self._signal_group(signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_seconds):
                    await self._process.wait()
        if self._process.returncode is None:
            self._signal_group(signal.SIGKILL)
        async with asyncio.timeout(_KILL_TIMEOUT_SECONDS):
            status = await self.wait()
        self._reader.cancel()
        return status

    def resident_bytes(self) -> int | None:
        """Main memory the process holds now; None when it is gone."""
        with suppress(psutil.Error):
            if self._usage is not None:
                return int(self._usage.memory_info().rss)
        return None

    def signs_of_life(self) -> tuple[int, ...]:
        """Numbers that change while the process does anything: lines, CPU, memory, bytes read."""
        if self._usage is None:
            return (self.log.line_count,)
        try:
            with self._usage.oneshot():
                times = self._usage.cpu_times()
                cpu_centiseconds = int((times.user + times.system) * 100)
                resident = self._usage.memory_info().rss
        except psutil.Error:
            return (self.log.line_count,)
        return (self.log.line_count, cpu_centiseconds, resident, self._read_bytes())

    def _read_bytes(self) -> int:
        with suppress(psutil.Error, AttributeError):
            counters = self._usage.io_counters()  # type: ignore[union-attr]
            return int(getattr(counters, "read_chars", counters.read_bytes))
        return 0

    async def _read_output(self) -> None:
        assert self._process.stdout is not None
        while output := await self._process.stdout.read(65536):
            self.log.feed(output)
        self.log.close()

    def _signal_group(self, number: signal.Signals) -> None:
        # To the group: an engine may have forked a helper that holds its socket or its memory.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
