"""A minute of everything at once, on the real engine with two real models."""

import asyncio
import time
from collections import Counter

import httpx2 as httpx
import psutil
import pytest

from fixtures.running import BUILTIN

pytestmark = pytest.mark.anyio

SECONDS = 60
QUESTION = [{"role": "user", "content": "Say a word."}]
# What may be refused while another client has its way: each with its own code.
REFUSALS = {(409, "engine_busy"), (409, "model_unloaded"), (503, "engine_unavailable")}
CANCELLED = (499, "load_cancelled")


async def test_a_minute_of_clients_that_want_different_things_ends_as_it_began(server):
    backend = psutil.Process(server.process.pid)
    seen: Counter[tuple[int, str | None]] = Counter()
    health_seconds: list[float] = []
    end = time.monotonic() + SECONDS

    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:

        async def ask(path, body=None):
            reply = await (client.get(path) if body is None else client.post(path, json=body))
            error = reply.json().get("error") or {}
            seen[reply.status_code, error.get("code")] += 1
            return reply

        async def alternate(models):
            while time.monotonic() < end:
                for model in models:
                    body = {"model": model, "messages": QUESTION, "max_tokens": 8}
                    reply = await ask("/v1/chat/completions", body)
                    if reply.status_code == 200:
                        assert reply.json()["model"] == model

        async def poll():
            while time.monotonic() < end:
                assert (await ask("/v1/status")).status_code == 200
                started = time.monotonic()
                assert (await client.get("/health")).status_code == 200
                health_seconds.append(time.monotonic() - started)
                await asyncio.sleep(0.05)

        async def load_and_unload():
            while time.monotonic() < end:
                await ask("/load", {"model_path": "tiny", "keep_others": True})
                await ask("/unload", {"model_path": "tiny"})

        await asyncio.wait_for(ask("/load", {"model_path": BUILTIN}), 60)
        assert server.process.poll() is None
        before_bytes = backend.memory_info().rss
        await asyncio.gather(
            alternate([BUILTIN, "tiny"]), alternate(["tiny", BUILTIN]), poll(), load_and_unload()
        )
        for model in ("tiny", BUILTIN):
            await client.post("/unload", json={"model_path": model})

    assert set(seen) <= {(200, None), CANCELLED, *REFUSALS}, seen
    assert seen[200, None] > 100
    assert backend.children(recursive=True) == []
    assert len(health_seconds) > 100
    # Far beyond what it takes (40 ms on two full cores): a loop that waits for an engine is slower.
    assert sorted(health_seconds)[len(health_seconds) * 99 // 100] < 0.5
    assert backend.memory_info().rss - before_bytes < 30_000_000
