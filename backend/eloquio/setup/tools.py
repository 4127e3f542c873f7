"""Runs the other programs that set-up needs, and ends them when it is interrupted."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from eloquio.setup.checkout import environment_of_tools
from eloquio.setup.console import Progress

GRACE_SECONDS = 2.0

Command = Sequence[str | Path]


class SetupFailed(Exception):
    """A step that can't go on: what failed, what to do, and the tool's own last words.

    What to do is told from the output if it isn't given.
    """

    def __init__(self, message: str, *, next_step: str | None = None, output: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.output = output


class Interrupted(Exception):
    """The tool was ended because the set-up was."""


class ToolFailed(Exception):
    """It didn't do what it should; `output` is all that it said."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


class Tools:
    """The programs that run for us. One that was started is ended by `stop` at the latest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(
        self,
        command: Command,
        *,
        cwd: Path,
        progress: Progress,
        environment: Mapping[str, str] | None = None,
        log: TextIO | None = None,
        limit_seconds: float | None = None,
    ) -> str:
        """Run it to its end, telling each line as progress, and return its output.

        ToolFailed if it fails, takes longer than the limit or can't be started, Interrupted if
        `stop` was called.
        """
        tool = Path(command[0]).name
        try:
            process = self._start(command, cwd, environment)
        except OSError as error:
            raise ToolFailed(f"{tool} can't be run", f"{tool}: {error.strerror}") from error
        output: list[str] = []
        assert process.stdout is not None
        with process.stdout, _ended_after(limit_seconds, process) as was_late:
            for line in process.stdout:
                output.append(line)
                progress.tell(line)
                if log is not None:
                    log.write(line)
                    log.flush()
            status = process.wait()
        with self._lock:
            self._running.discard(process)
        if self._stopped:
            raise Interrupted
        if was_late.is_set():
            raise ToolFailed(f"{tool} took longer than {limit_seconds:.0f} s", "".join(output))
        if status != 0:
            raise ToolFailed(f"{tool} ended with status {status}", "".join(output))
        return "".join(output)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            _signal_group(process, signal.SIGTERM)
        for process in running:
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                _signal_group(process, signal.SIGKILL)

    def _start(
        self, command: Command, cwd: Path, environment: Mapping[str, str] | None
    ) -> "subprocess.Popen[str]":
        with self._lock:
            if self._stopped:
                raise Interrupted
            process = subprocess.Popen(
                [os.fspath(part) for part in command],
                cwd=cwd,
                env=environment_of_tools() if environment is None else environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                # A group of its own: compilers and npm's scripts end together with their parent.
                process_group=0,
            )
            self._running.add(process)
            return process


def _signal_group(process: "subprocess.Popen[str]", number: int) -> None:
    # Not waited for yet, so the number is still the group's.
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


@contextlib.contextmanager
def _ended_after(
    seconds: float | None, process: "subprocess.Popen[str]"
) -> Iterator[threading.Event]:
    """Kill it when its time is over; the event then says that it was late."""
    was_late = threading.Event()

    def end() -> None:
        was_late.set()
        _signal_group(process, signal.SIGKILL)

    timer = threading.Timer(seconds, end) if seconds is not None else None
    if timer is not None:
        timer.start()
    try:
        yield was_late
    finally:
        if timer is not None:
            timer.cancel()
