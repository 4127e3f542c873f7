"""A worker as an engine: what it is started with, how far it says it is, what its end means."""

import asyncio
import sys
from pathlib import Path

import pytest

from eloquio.engines.address import Address
from eloquio.engines.kinds import worker
from eloquio.engines.state import Ready, Starting
from eloquio.errors import (
    AdapterRefused,
    EngineArchitectureUnknown,
    EngineKilled,
    EngineOutOfMemory,
    EngineRefusedFile,
    EngineStartFailed,
    LoaderRefused,
    PickleRefused,
    RemoteCodeRefused,
    WorkerMissing,
)
from eloquio.models import describe
from fixtures.pools import load, pool_of, until
from fixtures.safetensors_files import write_adapter_folder, write_folder
from fixtures.worker_program import set_loaded, started_with, write_program

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings(settings, tmp_path):
    write_folder(tmp_path / "models/org/base")
    write_adapter_folder(tmp_path / "models/style", "org/base")
    python = write_program(tmp_path / "worker")
    return settings.model_copy(
        update={"worker_python": python, "model_dirs": (tmp_path / "models",)}
    )


@pytest.fixture
async def pool(settings):
    async with pool_of(settings) as pool:
        yield pool


async def test_it_gets_its_plan_its_socket_and_an_environment_without_a_way_out(
    pool, tmp_path, monkeypatch
):
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("ELOQUIO_API_KEY", "secret")

    engine, _ = await load(pool, "style", max_seq_length=1024)
    started = started_with(tmp_path / "worker")

    module, name, flag, _, socket_flag, socket_path = started["arguments"]
    assert (module, name, flag, socket_flag) == ("-m", "eloquio.worker", "--plan", "--socket")
    assert socket_path.endswith(".sock")
    plan = started["plan"]
    assert (plan["model"], plan["context_length"], plan["default_adapter"]) == (
        *("style", 1024, "style"),
    )
    assert plan["weights_bytes"] == engine.spec.memory.weights_bytes
    environment = started["environment"]
    assert environment["PYTHONPATH"] == str(worker._PACKAGES)
    assert environment["HF_HUB_OFFLINE"] == environment["TRANSFORMERS_OFFLINE"] == "1"
    assert "secret" not in environment.values()


async def test_its_load_is_told_by_the_weights_that_it_has_read(pool, tmp_path):
    set_loaded(tmp_path / "worker", 40)
    loading = asyncio.create_task(load(pool, "org/base"))

    await until(lambda: isinstance(pool.latest and pool.latest.state, Starting))
    await until(lambda: pool.latest.state.loaded_bytes == 40)
    progress = describe.load_progress(pool)
    assert (progress.phase, progress.bytes, progress.total_bytes) == ("starting", 40, 100)
    assert describe.engine_status(pool.latest).engine == "worker"
    set_loaded(tmp_path / "worker", 100)

    engine, _ = await loading
    assert isinstance(engine.state, Ready)


async def test_what_it_holds_before_it_says_anything_is_not_taken_for_weights(pool, tmp_path):
    (tmp_path / "worker" / "loaded").unlink()
    loading = asyncio.create_task(load(pool, "org/base"))
    seen = []
    await until(lambda: isinstance(pool.latest and pool.latest.state, Starting))
    while len(seen) < 5:
        await until(lambda: pool.latest.state not in seen)
        seen.append(pool.latest.state)

    assert {(state.phase, state.loaded_bytes) for state in seen} == {("starting", 0)}
    set_loaded(tmp_path / "worker", 100)
    await loading


async def test_what_it_says_of_itself_is_what_is_told_of_it(pool):
    engine, _ = await load(pool, "style")

    told = describe.loaded_model(engine)

    assert (told.engine, told.is_gguf, told.gguf_variant) == ("unsloth", False, None)
    assert (told.is_lora, told.base_model) == (True, "org/base")
    assert (told.adapters, told.default_adapter) == (["style"], "style")
    assert (told.is_vision, told.supports_tools, told.dtype) == (True, True, "bfloat16")
    assert told.cache_type_kv == "bf16"
    assert "It was told so." in told.warnings
    status = describe.status(pool)
    assert (status.is_lora, status.is_gguf, status.engines[0].engine) == (True, False, "unsloth")


async def test_a_shorter_context_than_was_asked_is_said(pool):
    engine, _ = await load(pool, "org/base", max_seq_length=4096)

    assert "a context of 2048 tokens instead of 4096" in " ".join(engine.warnings)


async def test_its_files_are_gone_with_it(pool, tmp_path):
    engine, _ = await load(pool, "org/base")
    plan_file = started_with(tmp_path / "worker")["arguments"][3]

    await pool.unload("org/base")

    assert engine.is_settled
    assert not list(pool._run_folder.path.glob("*.json")), plan_file


async def test_no_line_of_it_names_a_folder_of_this_machine(settings, tmp_path):
    base, package = tmp_path / "models/org", worker._PACKAGES
    words = f"{base}/base/config.json, {sys.base_prefix}/lib/x.py, {package}/eloquio/y.py"
    write_program(tmp_path / "worker", last_words=words)
    async with pool_of(settings) as pool:
        with pytest.raises(EngineStartFailed):
            await load(pool, "style")

        assert pool.latest.log.lines[-1] == "base/config.json, lib/x.py, eloquio/y.py"


# Why it ended ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "error"),
    [
        ("out_of_memory", EngineOutOfMemory),
        ("loader_refused", LoaderRefused),
        ("adapter_refused", AdapterRefused),
        ("pickle_refused", PickleRefused),
        ("custom_code", RemoteCodeRefused),
        ("architecture_unsupported", EngineArchitectureUnknown),
        ("refused", EngineRefusedFile),
        ("of a later version", EngineRefusedFile),
    ],
)
async def test_a_load_that_failed_is_told_by_its_cause(settings, tmp_path, cause, error):
    words = f'worker-load-failed: {{"cause": "{cause}", "message": "at /secret/place/x: no"}}'
    write_program(tmp_path / "worker", last_words=words)
    async with pool_of(settings) as pool:
        with pytest.raises(error) as failed:
            await load(pool, "org/base")

    assert failed.value.evidence == "at x: no"
    assert type(failed.value) is error


@pytest.mark.parametrize(
    ("status", "lines", "error"),
    [
        (1, ["Traceback", "ModuleNotFoundError: No module named 'torch'"], WorkerMissing),
        (1, ['worker-load-failed: {"cause": "ref'], EngineRefusedFile),
        (1, ["worker-load-failed: []"], EngineRefusedFile),
        (-9, [], EngineKilled),
    ],
)
def test_an_end_without_a_cause_is_told_by_what_is_known(settings, status, lines, error):
    kind = worker.Worker(None, settings)
    assert type(kind.start_failure(status, lines)) is error


async def test_a_python_without_torch_is_told_so(settings):
    async with pool_of(settings.model_copy(update={"worker_python": Path(sys.executable)})) as pool:
        with pytest.raises(WorkerMissing, match="has no package torch"):
            await load(pool, "org/base")


def test_without_unix_sockets_it_listens_on_a_port_with_a_key_in_a_file(tmp_path):
    address = Address(port=1234, key="secret")

    words = worker._listening(address, tmp_path / "0")

    key_file = tmp_path / "0.key"
    assert words == ["--port", "1234", "--key-file", str(key_file)]
    assert key_file.read_text() == "secret"
    assert key_file.stat().st_mode & 0o077 == 0
