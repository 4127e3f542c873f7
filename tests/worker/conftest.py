"""Real models under the worker's own Python."""

from pathlib import Path

import pytest

from fixtures import worker_folders


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return worker_folders.smollm2()


@pytest.fixture(scope="session")
def says_banana() -> Path:
    return worker_folders.says_banana()


@pytest.fixture(scope="session")
def says_ahoy() -> Path:
    return worker_folders.says_ahoy()
