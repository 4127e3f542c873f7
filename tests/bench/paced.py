"""An engine that says one chunk every 40 ms on each of its streams, whoever reads them.

Each chunk's text is its number and the time at which it left, by a clock that all processes of the
machine share: so a reader knows whether it has all of them, and how late they are.
"""

import asyncio
import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from eloquio.doctor.faults.program import argument
from eloquio.doctor.faults.stand_in import HELP

PAUSE_SECONDS = 0.04
"""25 chunks a second, as a model says that is read with comfort."""
_ROOT = Path(__file__).parents[2]
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def write(path: Path) -> Path:
    """Make `path` this engine, for LLAMA_SERVER_PATH."""
    folders = os.pathsep.join([str(_ROOT / "backend"), str(_ROOT / "tests")])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!/bin/sh\nPYTHONPATH={shlex.quote(folders)} "
        f'exec {shlex.quote(sys.executable)} -m bench.paced "$@"\n'
    )
    path.chmod(0o755)
    return path


def main() -> None:
    if len(sys.argv) == 2:
        is_help = sys.argv[1] == "--help"
        sys.stdout.write(f"{HELP if is_help else 'version: 1 (paced)'}\n")
        return
    asyncio.run(_serve())


async def _serve() -> None:
    server = await asyncio.start_unix_server(_answer, argument("--host"), backlog=512)
    async with server:
        await server.serve_forever()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        path, body = await _read(reader)
        if body is None:
            _send(writer, {"status": "ok"} if path == "/health" else _properties())
        else:
            await _stream(writer, json.loads(body)["max_tokens"])
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        # Who asked has left.
        return
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader) -> tuple[str, bytes | None]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    method, path, _ = head.split(" ", 2)
    if method == "get":
        return path, None
    [length] = [line for line in head.split("\r\n") if line.startswith("content-length:")]
    return path, await reader.readexactly(int(length.partition(":")[2]))


async def _stream(writer: asyncio.StreamWriter, chunks: int) -> None:
    writer.write(_STREAM_HEAD)
    started = time.monotonic()
    for number in range(chunks):
        await asyncio.sleep(started + number * PAUSE_SECONDS - time.monotonic())
        if writer.is_closing():
            return
        _send_chunk(writer, _event({"content": f"{number} {time.monotonic():.6f}"}))
        await writer.drain()
    _send_chunk(writer, _event({}, "stop") + b"data: [DONE]\n\n")
    writer.write(b"0\r\n\r\n")


def _event(delta: dict[str, str], reason: str | None = None) -> bytes:
    chunk = {
        "choices": [{"finish_reason": reason, "index": 0, "delta": delta}],
        "created": 1,
        # About as long as an engine's.
        "id": "chatcmpl-RKPqSVzXbBRaKGtJcNbVjHAH1nGqnVbm",
        "model": "paced",
        "system_fingerprint": "b1-paced",
        "object": "chat.completion.chunk",
    }
    return b"data: %b\n\n" % json.dumps(chunk, separators=(",", ":")).encode()


def _send_chunk(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(b"%x\r\n%b\r\n" % (len(body), body))


def _send(writer: asyncio.StreamWriter, reply: dict[str, Any]) -> None:
    body = json.dumps(reply).encode()
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n")
    writer.write(b"content-length: %d\r\n\r\n%b" % (len(body), body))


def _properties() -> dict[str, Any]:
    return {
        "model_alias": argument("--alias"),
        "total_slots": int(argument("--parallel")),
        "default_generation_settings": {"n_ctx": 8192},
        "chat_template": "{{ messages }}",
        "modalities": {"vision": False},
    }


if __name__ == "__main__":
    main()
