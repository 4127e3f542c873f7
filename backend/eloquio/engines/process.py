"""One started process: its output, its signs of life, its end."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import psutil

from eloquio.engines.family import MARK_VARIABLE, Family, new_mark
from eloquio.engines.log import LogRing
from eloquio.engines.pid_file import Record, write_record
from eloquio.engines.watchdog import Sample

_LAUNCH = Path(__file__).with_name("launch.py")
_KILL_TIMEOUT_SECONDS = 5.0
# A grandchild can hold the output pipe open after the engine itself is gone.
_DRAIN_TIMEOUT_SECONDS = 1.0


class EngineProcess:
    """A child in a session of its own that dies with this process, even when that is killed."""

    def __init__(
        self,
        transport: asyncio.SubprocessTransport,
        output: "_Output",
        mark: str,
        pid_file: Path | None,
    ) -> None:
        self.log = output.log
        self._transport = transport
        self._output = output
        self._mark = mark
        self._pid_file = pid_file
        self._root = _child(transport.get_pid())
        self._family = Family(self._root, mark)
        self._end = asyncio.create_task(self._attend())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: LogRing,
        pid_file: Path | None = None,
    ) -> "EngineProcess":
        """Until its end is seen to, `pid_file` names it to a later backend.

        OSError when the process can't be started or the file can't be written.
        """
        mark = new_mark()
        transport, output = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Output(log),
            sys.executable,
            "-I",
            "-S",
            str(_LAUNCH),
            str(os.getpid()),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**environment, MARK_VARIABLE: mark},
            start_new_session=True,
        )
        process = cls(transport, output, mark, pid_file)
        try:
            # At once, not in a thread: no moment may pass in which nobody could find it.
            process._record(command[0])
        except OSError:
            await process.stop(grace_seconds=0)
            raise
        return process

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    @property
    def returncode(self) -> int | None:
        return self._transport.get_returncode()

    async def wait(self) -> int:
        """The exit status, once it and all it started have ended and its last words are read."""
        return await asyncio.shield(self._end)

    async def stop(self, grace_seconds: float) -> int:
        """SIGTERM to the group, SIGKILL after `grace_seconds`; returns when it is gone."""
        if self.returncode is None:
            self._family.look()
            self._family.signal_group(signal.SIGTERM)
            await asyncio.wait([self._output.exited], timeout=grace_seconds)
        if self.returncode is None:
            self._family.look()
            self._family.signal_group(signal.SIGKILL)
        async with asyncio.timeout(_KILL_TIMEOUT_SECONDS):
            return await self.wait()

    def resident_bytes(self) -> int | None:
        """Main memory the engine holds now; None when it is gone."""
        with suppress(psutil.Error):
            return int(self._engine().memory_info().rss)
        return None

    def anonymous_bytes(self) -> int | None:
        """Of that, what isn't mapped from a file and can't be given back while it runs."""
        with suppress(psutil.Error):
            memory = self._engine().memory_info()
            return int(memory.rss - getattr(memory, "shared", 0))
        return None

    def signs_of_life(self) -> Sample:
        """What the engine and its children have done until now."""
        cpu_seconds, resident_bytes, bytes_read = 0.0, 0, 0
        for process in self._family.members():
            with suppress(psutil.Error), process.oneshot():
                times = process.cpu_times()
                cpu_seconds += times.user + times.system
                resident_bytes += process.memory_info().rss
                bytes_read += _bytes_read(process)
        return Sample(self.log.line_count, cpu_seconds, resident_bytes, bytes_read)

    def _engine(self) -> psutil.Process:
        started = psutil.Process(self.pid)
        if sys.platform == "linux":
            return started
        # Elsewhere the engine is the child of the watcher that binds it to our life.
        return next(iter(started.children()), started)

    def _record(self, executable: str) -> None:
        if self._pid_file is None or self._root is None:
            return
        with suppress(psutil.Error):
            started = self._root.create_time()
            write_record(self._pid_file, Record(self.pid, started, executable, self._mark))

    async def _attend(self) -> int:
        """Sees to its end, whether somebody waits for that or not."""
        status = await self._output.exited
        await asyncio.to_thread(self._sweep, time.time())
        await asyncio.wait([self._output.closed], timeout=_DRAIN_TIMEOUT_SECONDS)
        self._transport.close()
        return status

    def _sweep(self, ended: float) -> None:
        # What it started must not go on holding its socket or its memory.
        self._family.kill(group_until=ended)
        if self._pid_file is not None:
            self._pid_file.unlink(missing_ok=True)


class _Output(asyncio.SubprocessProtocol):
    """Fills the log, and tells of the end as such.

    asyncio's own `Process.wait` waits for the output's end too, and a helper can put that off.
    """

    def __init__(self, log: LogRing) -> None:
        loop = asyncio.get_running_loop()
        self.log = log
        self.exited: asyncio.Future[int] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is one by what it does, not by its class.
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.log.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1 and not self.closed.done():
            self.log.close()
            self.closed.set_result(None)

    def process_exited(self) -> None:
        assert self._transport is not None
        status = self._transport.get_returncode()
        assert status is not None
        if not self.exited.done():
            self.exited.set_result(status)


def _child(pid: int) -> psutil.Process | None:
    """Our child of this number; None when it has ended already, and the number may be taken."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.ppid() == os.getpid():
            return process
    return None


def _bytes_read(process: psutil.Process) -> int:
    """A sum to compare: what it read, from a cache too, and what a disk gave for it."""
    # Not every system tells. What a mapping brings in is no read, but comes from a disk.
    with suppress(psutil.Error, AttributeError):
        counters = process.io_counters()
        return int(counters.read_bytes) + int(getattr(counters, "read_chars", 0))
    return 0
