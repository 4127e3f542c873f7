"""Real parts for every test: the real model, a tiny real one, a home of its own, a real server."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from eloquio.settings import Settings
from eloquio.setup.checkout import Checkout
from fixtures.running import BUILTIN, RunningServer, place, serving
from fixtures.tiny_engine import write_tiny_model

_NOT_OURS = ("ELOQUIO_", "HF_", "HUGGING", "LLAMA_", "XDG_")


@pytest.fixture(scope="session", autouse=True)
def bare_environment() -> Iterator[None]:
    """No variable of whoever runs the tests changes what Eloquio does in them."""
    with pytest.MonkeyPatch.context() as environment:
        for name in list(os.environ):
            if name.startswith(_NOT_OURS) and name != "ELOQUIO_TEST_MODEL":
                environment.delenv(name)
        yield


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


@pytest.fixture
def server(home: Path, tiny_model: Path) -> Iterator[RunningServer]:
    """A server with the built-in model, and a tiny one in a folder that the person named."""
    place(tiny_model, home / "shelf" / "tiny.gguf")
    with serving(home, "--model-dir", str(home / "shelf")) as running:
        yield running
