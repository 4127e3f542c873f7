"""The real llama-server made to fail: each end is told as what it was, in its own words."""

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import aiohttp
import numpy as np
import pytest

from eloquio import errors
from eloquio.engines.exits import crash, start_failure, tells_why
from eloquio.engines.kinds import llama_binary
from eloquio.engines.kinds.blame import Blame, blamed
from eloquio.engines.log import LogRing
from eloquio.engines.process import EngineProcess
from fixtures.gguf_files import cut, write_file, write_projector

pytestmark = pytest.mark.anyio

# Generous: a loaded machine of two cores may be slow, and none of these waits for its end.
LIMIT_SECONDS = 60


@pytest.fixture
def binary(settings):
    return llama_binary.locate(settings)


@pytest.fixture
def start(binary, tmp_path):
    """Starts the engine with a line of options; its socket lies in the test's own folder."""

    async def start(*options, host="e.sock", before=()):
        command = [
            *before,
            str(binary.path),
            "--no-ui",
            "--offline",
            "--host",
            str(tmp_path / host),
        ]
        environment = llama_binary.environment(binary, os.environ)
        return await EngineProcess.start([*command, *map(str, options)], environment, LogRing())

    return start


@pytest.fixture
def fail(start):
    """The error of a start that ends by itself, with what it wrote and its exit status."""

    async def fail(*options, **more):
        # In about three of a hundred ends the engine's logger loses its last lines.
        for _ in range(5):
            process = await start(*options, **more)
            async with asyncio.timeout(LIMIT_SECONDS):
                status = await process.wait()
            if status < 0 or tells_why(process.log.lines):
                break
        return start_failure(status, process.log.lines), process.log.lines, status

    return fail


def only_prebuilt(binary):
    """One built here may have its libraries inside, and a GPU's that reserve any address space."""
    if binary.source != "wheel":
        pytest.skip("needs the prebuilt engine")


def patched(source, target, old, new):
    content = source.read_bytes()
    assert old in content
    assert len(old) == len(new)
    target.write_bytes(content.replace(old, new))
    return target


async def test_a_file_that_was_cut_on_the_way(fail, tiny_model, tmp_path):
    error, *_ = await fail("--model", cut(tiny_model, tmp_path / "cut.gguf", 9_000_000))
    assert type(error) is errors.EngineFileTruncated
    assert "not within the file bounds" in error.evidence
    assert str(tmp_path) not in error.evidence


async def test_an_architecture_from_nowhere(fail, tiny_model, tmp_path):
    # Its name stands after its length in the header's first entry.
    old = b"general.architecture\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00llama"
    path = patched(tiny_model, tmp_path / "odd.gguf", old, old.removesuffix(b"llama") + b"bogus")
    error, *_ = await fail("--model", path)
    assert type(error) is errors.EngineArchitectureUnknown
    assert "bogus" in error.message


async def test_a_tensor_that_is_missing(fail, tiny_model, tmp_path):
    path = patched(tiny_model, tmp_path / "odd.gguf", b"blk.0.ffn_down.w", b"blk.0.ffn_odd_.w")
    error, *_ = await fail("--model", path)
    assert type(error) is errors.EngineRefusedFile
    assert "ffn_down" in error.evidence


async def test_a_file_that_is_not_there(fail, tmp_path):
    error, *_ = await fail("--model", tmp_path / "gone.gguf")
    assert type(error) is errors.EngineFileLost
    assert "No such file" in error.evidence


async def test_an_option_it_does_not_have(fail):
    error, lines, status = await fail("--nonsense")
    assert type(error) is errors.EngineFlagUnknown
    assert "--nonsense" in error.message
    assert blamed(lines, status, [("--nonsense",)]) == Blame("option", "--nonsense")


async def test_a_value_its_option_does_not_take(fail):
    error, lines, status = await fail("--cache-type-k", "q99")
    assert type(error) is errors.EngineOptionRefused
    assert "q99" in error.evidence
    assert blamed(lines, status, [("--cache-type-k", "q99")]) == Blame("option", "--cache-type-k")


async def test_a_template_that_is_none(fail, tiny_model, tmp_path):
    template = tmp_path / "template.jinja"
    template.write_text("{% for message in messages %}{{ message.content }")
    error, *_ = await fail("--model", tiny_model, "--jinja", "--chat-template-file", template)
    assert type(error) is errors.EngineTemplateInvalid
    # The engine's logger may lose its last line, the parser's; the one before names the template.
    assert "Parser Error" in error.evidence or "template is not supported" in error.evidence


async def test_an_adapter_of_another_model(fail, tiny_model, tmp_path):
    adapter = write_file(
        tmp_path / "adapter.gguf",
        architecture="llama",
        metadata={"general.type": "adapter", "adapter.type": "lora", "adapter.lora.alpha": 16.0},
        tensors=[
            ("blk.0.attn_q.weight.lora_a", np.ones((4, 96), np.float32), None),
            ("blk.0.attn_q.weight.lora_b", np.ones((96, 4), np.float32), None),
        ],
    )
    error, *_ = await fail("--model", tiny_model, "--lora", adapter)
    assert type(error) is errors.AdapterRefused
    assert "wrong base model" in error.evidence


async def test_a_draft_model_that_was_cut(fail, tiny_model, tmp_path):
    draft = cut(tiny_model, tmp_path / "draft.gguf", 9_000_000)
    error, *_ = await fail("--model", tiny_model, "--model-draft", draft)
    assert type(error) is errors.DraftRefused


async def test_a_projector_it_does_not_know(fail, tiny_model, tmp_path):
    projector = write_projector(tmp_path / "mmproj.gguf")
    error, lines, status = await fail("--model", tiny_model, "--mmproj", projector)
    assert type(error) is errors.ProjectorRefused
    options = [("--model", str(tiny_model)), ("--mmproj", str(projector))]
    assert blamed(lines, status, options) == Blame("projector", "--mmproj")


async def test_a_socket_that_cannot_be_bound(fail, tiny_model):
    error, *_ = await fail("--model", tiny_model, host="nowhere/e.sock")
    assert type(error) is errors.EngineSocketFailed


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs util-linux's prlimit")
async def test_a_context_for_which_there_is_no_memory(fail, binary, real_model):
    only_prebuilt(binary)
    limit = ("/usr/bin/env", "prlimit", f"--as={1_500_000_000}")
    options = ("--model", real_model, "--ctx-size", 1_048_576, "--no-warmup", "--fit", "off")
    error, lines, status = await fail(*options, before=limit)
    assert type(error) is errors.ContextOutOfMemory
    assert "kv cache" in error.evidence
    assert blamed(lines, status, [("--mmproj", "/p.gguf")]) is None


async def test_an_engine_without_the_libraries_beside_it(binary, tmp_path):
    only_prebuilt(binary)
    lonely = tmp_path / "llama-server"
    shutil.copy(binary.path, lonely)
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    process = await EngineProcess.start([str(lonely), "--version"], environment, LogRing())
    async with asyncio.timeout(LIMIT_SECONDS):
        status = await process.wait()
    assert type(start_failure(status, process.log.lines)) is errors.EngineLibraryMissing


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (signal.SIGKILL, errors.EngineKilled),
        (signal.SIGSEGV, errors.EngineAborted),
        (signal.SIGILL, errors.EngineIllegalInstruction),
    ],
)
async def test_a_signal_that_ends_it(start, tiny_model, number, expected):
    process = await start("--model", tiny_model)
    async with asyncio.timeout(LIMIT_SECONDS):
        # Not before it is the engine: until then it is our own launcher.
        while not process.log.lines:
            await asyncio.sleep(0.01)
        os.kill(process.pid, number)
        status = await process.wait()
    assert type(start_failure(status, process.log.lines)) is expected
    assert signal.Signals(number).name in crash(status, process.log.lines).evidence


async def test_a_file_that_is_cut_while_it_is_in_use(binary, start, tiny_model, tmp_path):
    only_prebuilt(binary)
    model = Path(shutil.copy(tiny_model, tmp_path / "model.gguf"))
    process = await start("--model", model, "--no-repack", "--no-warmup")
    connector = aiohttp.UnixConnector(str(tmp_path / "e.sock"))
    async with (
        asyncio.timeout(LIMIT_SECONDS),
        aiohttp.ClientSession("http://engine", connector=connector) as client,
    ):
        while not await is_healthy(client):
            await asyncio.sleep(0.05)
        os.truncate(model, 100_000)
        with pytest.raises(aiohttp.ClientError):
            await client.post("/completion", json={"prompt": "Hello", "n_predict": 5})
        status = await process.wait()
    assert status == -signal.SIGBUS
    assert "file was changed" in crash(status, process.log.lines).message


async def is_healthy(client):
    with suppress(aiohttp.ClientError):
        async with client.get("/health") as reply:
            return reply.status == 200
    return False
