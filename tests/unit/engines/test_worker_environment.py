"""Which Python a worker runs in, and a load that waits until it is there."""

import asyncio
import sys
from dataclasses import replace

import pytest

from eloquio.engines.kinds import worker_environment
from eloquio.engines.kinds.worker_environment import python_of, until_there
from eloquio.engines.spec import EngineSpec, MemoryPlan
from eloquio.errors import LoadCancelled, WorkerMissing
from eloquio.models import describe
from eloquio.setup.checkout import Checkout
from eloquio.setup.lock import locked
from eloquio.setup.stamps import Stamp
from eloquio.setup.tools import Tools
from eloquio.setup.worker import STAGES, WorkerEnvironment, log_of
from fixtures.gguf_files import write_model
from fixtures.pools import load, pool_of, until, with_engine
from fixtures.safetensors_files import write_folder

pytestmark = pytest.mark.anyio


@pytest.fixture
def checkout(tmp_path):
    made = Checkout(tmp_path / "checkout")
    made.worker_constraints.parent.mkdir(parents=True)
    made.worker_constraints.write_text("torch==2.14.1\n")
    return made


@pytest.fixture
def spec(tmp_path):
    return EngineSpec("mine", "mine", "worker", "chat", tmp_path, MemoryPlan(1, 1, 0, 1, "cpu"))


def make(checkout, home):
    """As set-up leaves it when all is installed."""
    for name in ("python", "pip"):
        program = checkout.worker_venv / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch(mode=0o755)
    inputs = WorkerEnvironment(checkout, home, Tools())._inputs(len(STAGES))
    Stamp(checkout.worker_venv / "packages.stamp").write(inputs)


async def test_the_checkouts_own_is_taken_once_it_is_whole(spec, settings, checkout):
    with pytest.raises(WorkerMissing, match="isn't there"):
        python_of(spec, settings, checkout)

    make(checkout, settings.home)

    assert python_of(spec, settings, checkout) == checkout.worker_venv / "bin" / "python"


async def test_one_that_is_named_comes_first(spec, settings, checkout, tmp_path):
    make(checkout, settings.home)
    named = settings.model_copy(update={"worker_python": tmp_path / "gone"})
    own = replace(spec, worker_python=type(tmp_path)(sys.executable))

    assert str(python_of(own, named, checkout)) == sys.executable
    with pytest.raises(WorkerMissing, match="can't be run"):
        python_of(spec, named, checkout)
    with pytest.raises(WorkerMissing):
        await until_there(spec, named, print, checkout)


async def test_where_nobody_makes_it_a_load_fails_with_how_to_make_it(spec, settings, checkout):
    log_of(settings.home).parent.mkdir(parents=True)
    log_of(settings.home).write_text("Collecting torch\nERROR: no room in /home/me/disk\n\n")

    with pytest.raises(WorkerMissing) as missing:
        await until_there(spec, settings, print, checkout)

    assert "scripts/start" in missing.value.next_step
    assert missing.value.evidence == "ERROR: no room in disk"


async def test_while_it_is_made_a_load_waits_tells_how_far_it_is_and_goes_on(
    spec, settings, checkout
):
    told = []
    with locked(checkout.worker_venv / "setup.lock"):
        waiting = asyncio.create_task(until_there(spec, settings, told.append, checkout))
        await until(lambda: told)
        log_of(settings.home).parent.mkdir(parents=True)
        log_of(settings.home).write_bytes(b"Collecting\r  12 %\r\x1b[32m  50 %\x1b[0m of torch\n")
        await until(lambda: "50 %" in told[-1])
        assert not waiting.done()
        make(checkout, settings.home)
        await waiting

    assert told[0] == "Waiting for the torch environment: it is being made"
    assert told[-1] == "Waiting for the torch environment: 50 % of torch"


async def test_a_maker_that_gives_up_ends_the_wait(spec, settings, checkout):
    told = []
    with locked(checkout.worker_venv / "setup.lock"):
        waiting = asyncio.create_task(until_there(spec, settings, told.append, checkout))
        await until(lambda: told)

    with pytest.raises(WorkerMissing):
        await waiting


async def test_a_waiting_load_is_seen_keeps_nobody_waiting_and_can_be_cancelled(
    settings, checkout, tmp_path, monkeypatch
):
    monkeypatch.setattr(worker_environment.Checkout, "here", lambda: checkout)
    write_folder(tmp_path / "models/org/tensors")
    write_model(tmp_path / "models/one.gguf")
    settings = with_engine(settings, tmp_path).model_copy(
        update={"model_dirs": (tmp_path / "models",)}
    )
    with locked(checkout.worker_venv / "setup.lock"):
        async with pool_of(settings) as pool:
            waiting = asyncio.create_task(load(pool, "org/tensors"))
            await until(lambda: pool.awaiting)

            progress = describe.load_progress(pool)
            assert (progress.model, progress.phase) == ("org/tensors", "downloading")
            assert progress.message.startswith("Waiting for the torch environment")
            assert describe.status(pool).loading == ["org/tensors"]
            assert describe.in_memory(pool) == {"org/tensors": "loading"}
            engine, _ = await load(pool, "one")
            assert engine.is_serving
            assert await pool.unload("org/tensors") == "org/tensors"

            with pytest.raises(LoadCancelled):
                await waiting
            assert not pool.awaiting
