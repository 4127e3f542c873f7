"""A streamed answer as a strict client reads it."""

import json
from typing import Any

import aiohttp

from eloquio.doctor.faults.scenario import expect


class Stream:
    """Reads as far as it is told, and keeps what came."""

    def __init__(self, reply: aiohttp.ClientResponse) -> None:
        self.status = reply.status
        self.text = ""
        self.tokens = 0
        self.errors: list[dict[str, Any]] = []
        self.is_done = False
        """Whether it ended with `[DONE]`: only a whole answer may."""
        self._reply = reply

    async def read(self, tokens: int | None = None) -> "Stream":
        """Itself, with so many tokens read, or all there is."""
        expect(self.status == 200, f"The stream began with status {self.status}.")
        while tokens is None or self.tokens < tokens:
            line = await self._reply.content.readline()
            if not line:
                break
            if line.startswith(b"data: "):
                self._take(line.removeprefix(b"data: ").strip())
        return self

    def leave(self) -> None:
        """Closes the connection, as a client does that is ended."""
        self._reply.close()

    def _take(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.is_done = True
            return
        event = json.loads(data)
        if "error" in event:
            self.errors.append(event["error"])
            return
        for choice in event["choices"]:
            if piece := choice["delta"].get("content"):
                self.text += piece
                self.tokens += 1

    def failure(self, code: str) -> dict[str, Any]:
        """The one error that it ended with; Broken if it ended in any other way."""
        expect(not self.is_done, "A broken answer ended with [DONE], as if it were whole.")
        seen = [error.get("code") for error in self.errors]
        expect(seen == [code], f"A broken answer ended with the errors {seen}, not one {code}.")
        return self.errors[0]
