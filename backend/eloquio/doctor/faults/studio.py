"""A running Eloquio, with stand-ins for its engines, as a person or a script meets it."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from eloquio.doctor.faults import model_files, stand_in
from eloquio.doctor.faults.processes import is_alive
from eloquio.doctor.faults.program import notes
from eloquio.doctor.faults.scenario import Broken, expect, until
from eloquio.doctor.faults.stream import Stream

Json = dict[str, Any]

# What only the page's own browser sends.
PAGE = {"sec-fetch-site": "same-origin"}
_END_SECONDS = 30.0


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: Json
    seconds: float

    @property
    def code(self) -> str | None:
        """The error's, if it is one."""
        return (self.body.get("error") or {}).get("code")

    @property
    def text(self) -> str:
        """All that an error says: message, evidence, next step."""
        error = self.body.get("error") or {}
        return " ".join(str(error.get(part) or "") for part in ("message", "evidence", "next_step"))

    def says(self, *words: str) -> "Reply":
        """Itself, if its error says all of that; else Broken."""
        for word in words:
            expect(word in self.text, f"The error doesn't say {word!r}: {self.text}")
        return self

    def require(self, status: int, code: str | None = None) -> "Reply":
        """Itself, if it is such an answer; else Broken, with what it is."""
        wanted = f"{status} {code or ''}".strip()
        seen = f"{self.status} {self.code or ''} {self.text}".strip()
        expect(
            self.status == status and (code is None or self.code == code),
            f"The answer was {seen}, not {wanted}.",
        )
        return self


@dataclass
class Studio:
    """One running server. Models are called by the names under which `studio` was given them."""

    home: Path
    shelf: Path
    program: Path
    process: asyncio.subprocess.Process
    url: str
    http: aiohttp.ClientSession = field(repr=False)

    # What a person or a script asks -----------------------------------------------------------

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.ask("GET", path, None, headers)

    async def post(self, path: str, body: Json | None = None) -> Reply:
        return await self.ask("POST", path, body, {})

    async def ask(
        self, method: str, path: str, body: Json | None, headers: Mapping[str, str]
    ) -> Reply:
        started = time.monotonic()
        async with self.http.request(
            method, f"{self.url}{path}", json=body, headers=headers
        ) as reply:
            content = await reply.json() if reply.content_type == "application/json" else {}
            return Reply(reply.status, reply.headers, content, time.monotonic() - started)

    async def load(self, model: str, **fields: object) -> Reply:
        return await self.post("/v1/load", {"model_path": model, **fields})

    async def unload(self, model: str | None = None, **fields: object) -> Reply:
        return await self.post("/v1/unload", {"model_path": model, **fields})

    async def chat(self, model: str | None = None, **fields: object) -> Reply:
        return await self.post("/v1/chat/completions", _question(model) | fields)

    @asynccontextmanager
    async def stream(self, model: str | None = None, **fields: object) -> AsyncIterator[Stream]:
        body = _question(model) | {"stream": True} | fields
        async with self.http.post(f"{self.url}/v1/chat/completions", json=body) as reply:
            yield Stream(reply)

    async def status(self) -> Json:
        return (await self.get("/v1/status")).require(200).body

    async def engine(self, model: str) -> Json | None:
        """What `/status` says of the model's engine."""
        engines = (await self.status())["engines"]
        return next((engine for engine in engines if engine["model"] == model), None)

    async def until_state(self, model: str, *states: str) -> Json:
        """The engine as soon as it is in one of these states."""

        async def look() -> Json | None:
            engine = await self.engine(model)
            return engine if engine and engine["status"]["state"] in states else None

        return await until(look, f"{model} didn't become {' or '.join(states)}")

    # What can be seen of it from outside ------------------------------------------------------

    def behave(self, model: str, **behaviour: object) -> None:
        """How the model's stand-in behaves from its next start on."""
        stand_in.write_for(model_files.place(self.shelf, model), **behaviour)

    def noted(self, event: str, model: str | None = None) -> list[Json]:
        return [
            note
            for note in notes(self.program)
            if note["event"] == event and model in (None, note["model"])
        ]

    def starts(self, model: str | None = None) -> int:
        return len(self.noted("start", model))

    def alive(self, model: str | None = None) -> list[int]:
        """The processes of its stand-ins that are there now, with what they forked."""
        told = [*self.noted("start", model), *self.noted("fork", model)]
        return [note["pid"] for note in told if is_alive(note["pid"], self.program)]

    async def until_started(self, model: str, count: int = 1) -> int:
        """The process of the model's stand-in, as soon as it has started that often."""

        async def look() -> list[Json] | None:
            started = self.noted("start", model)
            return started if len(started) >= count else None

        started = await until(look, f"{model} wasn't started {count} times")
        return int(started[-1]["pid"])

    async def until_alone(self, model: str) -> None:
        """Returns when no stand-in but this model's is there any more."""

        async def look() -> bool:
            return self.alive() == self.alive(model)

        await until(look, f"Others than {model} are still there")

    async def until_gone(self, otherwise: str, seconds: float = 10.0) -> None:
        """Returns when none of its stand-ins is there any more."""

        async def look() -> bool:
            return not self.alive()

        try:
            await until(look, otherwise, seconds)
        except Broken as broken:
            raise Broken(f"{broken}: {len(self.alive())} of them") from None

    def resident_bytes(self) -> int:
        """What the server itself holds in memory."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def log(self) -> str:
        return (self.home / "server.log").read_text(errors="replace")

    async def end(self, number: signal.Signals = signal.SIGINT) -> float:
        """Signals it and answers in how many seconds it was gone."""
        started = time.monotonic()
        self.process.send_signal(number)
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self.process.wait()
        except TimeoutError:
            raise Broken(f"{number.name} didn't end the server in {_END_SECONDS:g} s") from None
        return time.monotonic() - started


def _question(model: str | None) -> Json:
    named = {} if model is None else {"model": model}
    return named | {"messages": [{"role": "user", "content": "Who are you?"}]}
