"""Processes and servers that aren't ours: never signalled, never asked."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from eloquio.doctor.faults import stand_in
from eloquio.doctor.faults.processes import is_alive
from eloquio.doctor.faults.scenario import expect, meanwhile, proves, until
from eloquio.doctor.faults.serving import studio
from eloquio.doctor.faults.studio import Studio

_HEALTHY = b'{"status": "ok", "model_alias": "a"}'


@asynccontextmanager
async def _own_llama_server(folder: Path, model: Path) -> AsyncIterator[tuple[int, Path]]:
    """A llama-server that the person runs, of the same model and named after Eloquio."""
    program = stand_in.write(folder / "eloquio" / "llama-server")
    process = await asyncio.create_subprocess_exec(
        program, "--model", model, "--alias", "eloquio", "--host", folder / "own.sock"
    )
    try:
        yield process.pid, program
    finally:
        process.kill()
        await process.wait()


@proves("A start ends no llama-server of the person's, and no engine of another Eloquio.")
async def are_left_alone_by_a_start(folder: Path) -> str:
    async with studio(folder / "one", {"a": {}}) as first:
        (await first.load("a")).require(200)
        before = first.alive("a")
        async with _own_llama_server(folder, first.shelf / "a.gguf") as (stranger, program):
            async with studio(folder / "two", {"b": {}}, home=first.home) as second:
                (await second.load("b")).require(200)
                expect(is_alive(stranger, program), "The person's llama-server was ended.")
            expect(is_alive(stranger, program), "The person's llama-server was ended at the end.")
        (await first.chat("a")).require(200)
        expect(first.alive("a") == before, "The other Eloquio's engine was ended.")
        return "both live on, beside a second server of the same home"


@proves("What stands in an old pid file is never trusted: nothing but our own is signalled.")
async def are_named_by_bad_pid_files(folder: Path) -> str:
    async with studio(folder / "one", {"a": {}}) as first:
        (await first.load("a")).require(200)
        [real] = (first.home / "run").rglob("*.pid")
        async with _own_llama_server(folder, first.shelf / "a.gguf") as (stranger, program):
            home = folder / "home"
            _leave_pid_files(home / "run" / "left0000", real.read_text(), stranger)
            async with studio(folder / "two", {"b": {}}, home=home) as second:
                (await second.load("b")).require(200)
                (await second.chat("b")).require(200)
                expect(is_alive(stranger, program), "A stranger named by a pid file was ended.")
                expect(first.alive("a"), "Another Eloquio's engine was ended.")
        (await first.chat("a")).require(200)
        return "the start succeeded, and nobody was signalled"


def _leave_pid_files(folder: Path, real: str, stranger: int) -> None:
    """What a killed server could have left, with all that could stand in it by accident."""
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    contents = ["0", "1", "-1", "abc", "", "9" * 400, "[]", "{}", "null", "\0\0\0", "x" * 2**20]
    named = json.loads(real)
    if isinstance(named, dict):
        # A real one, whose pid has become somebody else's.
        contents += [json.dumps(named | {"pid": pid}) for pid in (stranger, os.getpid(), 0, 1, -1)]
    for number, content in enumerate(contents):
        (folder / f"{number}.pid").write_text(content)
    (folder / "binary.pid").write_bytes(bytes(range(256)))
    (folder / "folder.pid").mkdir()
    (folder / "link.pid").symlink_to(folder / "nowhere")
    (folder / "loop.pid").symlink_to(folder / "loop.pid")


@proves("A server that says it is another model is never used.")
async def answer_in_the_engines_place(folder: Path) -> str:
    async with studio(folder, {"a": {"alias": "somebody-else"}}) as running:
        (await running.load("a")).require(502, "engine_socket_failed")
        await running.until_gone("The engine that was refused is still there")
        expect(not running.noted("request"), "It was asked a question.")
        return "engine_socket_failed, and it was asked nothing"


@proves("Where a socket's path would be too long, an engine is reached by a port with a key.")
async def make_no_difference_on_a_port(folder: Path) -> str:
    async with _on_a_port(folder, {"a": {}}) as running:
        (await running.load("a")).require(200)
        (await running.chat("a")).require(200)
        arguments = running.noted("start", "a")[0]["arguments"]
        expect("--port" in arguments, "The engine wasn't given a port.")
        expect("--api-key-file" in arguments, "The engine asks for no key.")
        return "loaded and answered on loopback, with a key that stands in no command line"


@proves("A stranger on the engine's port that calls itself healthy is never used.")
async def take_the_engines_port(folder: Path) -> str:
    async with (
        _on_a_port(folder, {"a": {"hangs": True}}) as running,
        meanwhile(running.load("a")) as loading,
    ):
        await running.until_started("a")
        arguments = running.noted("start", "a")[0]["arguments"]
        port = int(arguments[arguments.index("--port") + 1])
        asked: list[bytes] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readline())
            head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n"
            writer.write(head + b"content-length: %d\r\n\r\n%s" % (len(_HEALTHY), _HEALTHY))
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", port):

            async def is_asked() -> bool:
                return bool(asked)

            await until(is_asked, "Nobody asked on the engine's port")
            reply = await loading
        expect(reply.status in (502, 504), f"The load ended with {reply.status} {reply.code}.")
        expect(not any(b"POST" in line for line in asked), "The stranger got a person's question.")
        return f"{reply.status} {reply.code}, and the stranger got no question"


@asynccontextmanager
async def _on_a_port(folder: Path, models: dict[str, dict[str, object]]) -> AsyncIterator[Studio]:
    """A server whose folders have names too long for sockets in them."""
    runtime = folder / ("r" * 100)
    runtime.mkdir()
    variables = {"XDG_RUNTIME_DIR": runtime, "ELOQUIO_START_INACTIVITY_SECONDS": 3}
    async with studio(folder, models, variables, home=folder / ("h" * 100)) as running:
        yield running
