"""Real parts for every test: the real model, a tiny real one, a home of its own, a real server."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from eloquio.settings import Settings
from eloquio.setup.checkout import Checkout
from fixtures.tiny_engine import write_tiny_model

CAPITAL = "What is the capital of France? Answer briefly."
BUILTIN = "builtin/smollm2-135m-instruct"


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def real_model() -> Path:
    """SmolLM2 135M, as set-up keeps it in the checkout."""
    named = os.environ.get("ELOQUIO_TEST_MODEL")
    path = Path(named) if named else Checkout.here().kept_model
    assert path.is_file(), "scripts/test brings the model"
    return path


@pytest.fixture(scope="session")
def tiny_model(real_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model of one layer: loads at once, and answers as long as it may."""
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    write_tiny_model(real_model, path)
    return path


@pytest.fixture
def home(tmp_path: Path, real_model: Path) -> Path:
    """An empty home with the built-in model."""
    folder = tmp_path / "home"
    place(real_model, folder / "models" / f"{BUILTIN}.gguf")
    return folder


@pytest.fixture
def settings(home: Path, tmp_path: Path) -> Settings:
    return Settings(home=home, hf_home=tmp_path / "hf", load_on_start=False)


def place(model: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(model, target)
    return target


@dataclass
class RunningServer:
    url: str
    process: subprocess.Popen[str]
    home: Path

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=15)


@contextmanager
def serving(home: Path, *flags: str, **variables: str) -> Iterator[RunningServer]:
    """`eloquio serve` as a person starts it, on a free port."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ELOQUIO_", "HF_", "LLAMA_"))
    }
    environment |= {"HF_HOME": str(home / "no-hub")} | variables
    command = [sys.executable, "-m", "eloquio", "serve", "--no-browser", "--port", "0"]
    with (
        (home / "stderr.txt").open("w") as stderr,
        subprocess.Popen(
            [*command, "--home", str(home), *flags],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=environment,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = re.search(r"http://\S+", line)
            assert address, (line, (home / "stderr.txt").read_text())
            yield RunningServer(address.group(), process, home)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(timeout=15)


@pytest.fixture
def server(home: Path, tiny_model: Path) -> Iterator[RunningServer]:
    """A server with the built-in model, and a tiny one in a folder that the person named."""
    place(tiny_model, home / "shelf" / "tiny.gguf")
    with serving(home, "--model-dir", str(home / "shelf")) as running:
        yield running
