"""Says what goes on: one line for each step that ended, and one that moves for those that run."""

import re
import shutil
import sys
import threading
import time
from types import TracebackType
from typing import Literal, TextIO

TICK_SECONDS = 0.25
PLAIN_SECONDS = 15.0
LINE_LENGTH = 120

Mark = Literal["ok", "!!", "--"]
"""How a step ended: well, in failure, or interrupted."""

# Warnings, and the lines of the server that Playwright tests.
ASIDE = re.compile(r"(warning:|npm warn |\[WebServer\])", re.IGNORECASE)
NOT_PRINTED = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class Progress:
    """One running step, and what it said last."""

    def __init__(self, name: str, started: float) -> None:
        self.name = name
        self.started = started
        self.text = ""
        self.plainly_said = started

    def tell(self, text: str) -> None:
        text = NOT_PRINTED.sub("", text).strip()
        if text and not ASIDE.match(text):
            self.text = text

    def line(self, now: float) -> str:
        elapsed = f"{self.name} {now - self.started:.0f} s"
        return f"{elapsed}: {self.text}"[:LINE_LENGTH] if self.text else elapsed


class Console:
    """Where people read. On a terminal the running steps share one line that is drawn again and
    again; elsewhere each of them says every now and then where it is."""

    def __init__(
        self, out: TextIO | None = None, *, plain: bool = False, said_every: float = PLAIN_SECONDS
    ) -> None:
        self._out = out or sys.stdout
        self._moves = self._out.isatty() and not plain
        self._said_every_seconds = said_every
        self._lock = threading.RLock()
        self._running: list[Progress] = []
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> "Console":
        self._ticker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._ticker.join()
        with self._lock:
            self._clear()

    def say(self, text: str) -> None:
        with self._lock:
            self._clear()
            self._write(text + "\n")

    def start(self, name: str) -> Progress:
        progress = Progress(name, time.monotonic())
        with self._lock:
            self._running.append(progress)
            if not self._moves:
                self._write(f"  ..  {name}\n")
        return progress

    def finish(self, progress: Progress, mark: Mark = "ok") -> None:
        seconds = time.monotonic() - progress.started
        with self._lock:
            self._running.remove(progress)
            self.say(f"  {mark}  {progress.name}, {seconds:.1f} s")

    def _tick(self) -> None:
        while not self._ended.wait(TICK_SECONDS):
            with self._lock:
                if self._moves:
                    self._draw()
                else:
                    self._say_plainly()

    def _draw(self) -> None:
        if self._running:
            now = time.monotonic()
            line = " | ".join(progress.line(now) for progress in self._running)
            columns = shutil.get_terminal_size().columns
            self._write(f"\r\x1b[K{line[: columns - 1]}")

    def _say_plainly(self) -> None:
        now = time.monotonic()
        for progress in self._running:
            if now - progress.plainly_said >= self._said_every_seconds:
                progress.plainly_said = now
                self._write(f"  ..  {progress.line(now)}\n")

    def _clear(self) -> None:
        if self._moves:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        encoding = self._out.encoding or "ascii"
        self._out.write(text.encode(encoding, "replace").decode(encoding))
        self._out.flush()
