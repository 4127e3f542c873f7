"""The torch environment, `.venv-worker`: large, so it is made while the server already serves."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from eloquio.setup.checkout import Checkout
from eloquio.setup.console import Console, Progress
from eloquio.setup.lock import Locked, locked
from eloquio.setup.options import StartOptions
from eloquio.setup.packages import has_pip, make_venv, pip
from eloquio.setup.signals import unwind_on_signals
from eloquio.setup.stamps import Stamp, digest
from eloquio.setup.steps import Step, run_steps
from eloquio.setup.tools import Interrupted, SetupFailed, ToolFailed, Tools

# torch first and by itself: the packages after it then find it and bring no other.
STAGES = (
    ("torch==2.14.1", "torchvision==0.29.1"),
    (
        "torch==2.14.1",
        "torchvision==0.29.1",
        "torchaudio==2.11.0",
        "transformers==5.17.0",
        "peft",
        "accelerate",
        "snac",
        "unsloth==2026.10.9",
    ),
    # What the worker itself needs: its HTTP, sound out of any file, embeddings, forms, 4 bits.
    (
        "starlette",
        "uvicorn",
        "python-multipart",
        "av",
        "sentencepiece",
        "sentence-transformers",
        "bitsandbytes",
        "xgrammar",
    ),
)
# What the worker's own tests need besides.
TEST_PACKAGES = ("pytest>=9.2", "anyio>=4.16", "gguf>=0.19", "hibari-tts==0.2.1")
NEEDED_BYTES = 11 * 10**9
SERVER_START_SECONDS = 120.0
POLL_SECONDS = 0.5
SAID_EVERY_SECONDS = 60.0


class WorkerEnvironment:
    """`.venv-worker`, stage by stage; what a stage brought stays when a later one fails."""

    def __init__(self, checkout: Checkout, home: Path, tools: Tools) -> None:
        self._checkout = checkout
        self._venv = checkout.worker_venv
        self._tools = tools
        self._stamp = Stamp(self._venv / "packages.stamp")
        self._log = log_of(home)

    def is_made(self) -> bool:
        return has_pip(self._venv) and self._stamp.says(self._inputs(len(STAGES)))

    def make(self, progress: Progress) -> None:
        """Make it. Locked if another start does so already."""
        with locked(lock_of(self._checkout)):
            try:
                self._make(progress)
            except ToolFailed as error:
                raise SetupFailed(
                    f"{error}; the log {self._log} has all that it said", output=error.output
                ) from error

    def _make(self, progress: Progress) -> None:
        self._require_room()
        if not has_pip(self._venv):
            make_venv(self._venv, self._tools, progress)
        done = self._stages_done()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("a", encoding="utf-8") as log:
            for number, packages in enumerate(STAGES[done:], start=done + 1):
                log.write(f"\n{datetime.now():%Y-%m-%d %H:%M:%S} installing {' '.join(packages)}\n")
                constraints = self._checkout.worker_constraints
                python = self._venv / "bin" / "python"
                self._tools.run(
                    pip(python, "install", "-c", constraints, *packages),
                    cwd=self._checkout.root,
                    progress=progress,
                    log=log,
                )
                self._stamp.write(self._inputs(number))

    def _stages_done(self) -> int:
        stages = range(len(STAGES), 0, -1)
        return next((stage for stage in stages if self._stamp.says(self._inputs(stage))), 0)

    def _inputs(self, stage: int) -> str:
        root = self._checkout.root
        packages = " ".join(package for packages in STAGES[:stage] for package in packages)
        return digest(root, [self._checkout.worker_constraints], packages)

    def _require_room(self) -> None:
        free_bytes = shutil.disk_usage(self._checkout.root).free
        if self._stages_done() == 0 and free_bytes < NEEDED_BYTES:
            raise SetupFailed(
                f"it needs {NEEDED_BYTES / 1e9:.0f} GB of room, and {free_bytes / 1e9:.1f} GB are "
                "free",
                next_step="Make room, or start with --lite, which does without it.",
            )


def log_of(home: Path) -> Path:
    return home / "logs" / "worker-setup.log"


def lock_of(checkout: Checkout) -> Path:
    """Held by the process that makes the environment, while it does."""
    return checkout.worker_venv / "setup.lock"


def worker_step(checkout: Checkout, home: Path, tools: Tools) -> Step:
    environment = WorkerEnvironment(checkout, home, tools)

    def make(progress: Progress) -> None:
        try:
            environment.make(progress)
        except Locked:
            raise SetupFailed(
                "another start is making it already", next_step="Let that one finish."
            ) from None

    return Step(name="Torch environment", is_made=environment.is_made, make=make)


def worker_tests_step(checkout: Checkout, tools: Tools) -> Step:
    """What the worker's tests need, in the environment that `worker_step` has made."""
    stamp = Stamp(checkout.worker_venv / "tests.stamp")
    inputs = digest(checkout.root, [checkout.worker_constraints], " ".join(TEST_PACKAGES))

    def make(progress: Progress) -> None:
        constraints = checkout.worker_constraints
        tools.run(
            pip(checkout.worker_python, "install", "-c", constraints, *TEST_PACKAGES),
            cwd=checkout.root,
            progress=progress,
        )
        stamp.write(inputs)

    return Step(
        name="Test packages of the worker",
        is_made=lambda: stamp.says(inputs),
        make=make,
        after=("Torch environment",),
    )


def make_in_background(checkout: Checkout, options: StartOptions) -> None:
    """Start a process that makes the environment once the server is up, and ends with it.

    It becomes the server's child, since this process turns into the server.
    """
    host, port = options.address()
    subprocess.Popen(
        [sys.executable, "-m", "eloquio.setup", "worker", str(options.home), host, str(port)],
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(checkout.root / "backend")},
    )


def make_beside_server(arguments: Sequence[str]) -> int:
    """The background process: wait for the server, then make the environment, at low priority."""
    home, host, port = Path(arguments[0]), arguments[1], int(arguments[2])
    server = os.getppid()
    os.nice(19)
    tools = Tools()
    unwind_on_signals()
    try:
        with _ending_with(server, tools):
            _wait_until_serving(host, port, server)
            with Console(plain=True, said_every=SAID_EVERY_SECONDS) as console:
                console.say(
                    "The torch environment, about 7 GB, now comes in the background; "
                    f"{log_of(home)} has the details. Chats don't wait for it."
                )
                step = worker_step(Checkout.here(), home, tools)
                failed = run_steps([step], tools, console)
    except (KeyboardInterrupt, Interrupted):
        return 130
    return 1 if failed else 0


def _wait_until_serving(host: str, port: int, server: int) -> None:
    """Return when the address answers, or when it should long have."""
    deadline = time.monotonic() + SERVER_START_SECONDS
    while port and time.monotonic() < deadline:
        if os.getppid() != server:
            raise Interrupted
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
            return
        time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def _ending_with(server: int, tools: Tools) -> Iterator[None]:
    """End the tools when the server, our parent, is no more, however it ended."""
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(POLL_SECONDS):
            if os.getppid() != server:
                tools.stop()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()
