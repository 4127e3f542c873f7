"""An answer ends when nobody wants it any more: in each phase, beside others, and only that one."""

import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp
import httpx2 as httpx
import pytest

from fixtures.pools import until
from fixtures.running import BUILTIN, place, serving

pytestmark = pytest.mark.anyio

# Read in batches beside another stream, it takes many times as long as a stop is given here.
LONG = " word" * 6_500
STOP_SECONDS = 20


@pytest.fixture(scope="module")
def server(tmp_path_factory, real_model):
    home = tmp_path_factory.mktemp("stopping") / "home"
    place(real_model, home / "models" / f"{BUILTIN}.gguf")
    with serving(home, "--no-load-on-start") as running:
        body = {"model_path": BUILTIN, "n_parallel": 2}
        httpx.post(f"{running.url}/v1/load", json=body, timeout=120).raise_for_status()
        yield running


class Answer:
    """One that would go on for long, read in a task."""

    def __init__(self, session, text="Tell a very long story.", **fields):
        question = [{"role": "user", "content": text}]
        self.body = {"messages": question, "ignore_eos": True, "stream": True} | fields
        self.status, self.received = 0, b""
        self.task = asyncio.create_task(self.read(session))

    async def read(self, session):
        async with session.post("/v1/chat/completions", json=self.body) as reply:
            self.status = reply.status
            async for piece in reply.content.iter_any():
                self.received += piece

    async def leave(self):
        """Closes the connection."""
        self.task.cancel()
        await asyncio.wait({self.task})


@asynccontextmanager
async def another_stream(session):
    other = Answer(session)
    await until(lambda: other.received, 60)
    yield other
    assert not other.task.done(), "the other stream was hit"
    await other.leave()
    await until_async(lambda: engine_is(session, busy=0))


async def until_async(condition, seconds=STOP_SECONDS):
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.05)


async def engine_is(session, **expected):
    async with session.get("/v1/status") as reply:
        [engine] = (await reply.json())["engines"]
    return all(engine[name] == value for name, value in expected.items())


async def slots_at_work(server):
    """By what the engine itself says."""
    [socket] = (server.home / "run").glob("*/*.sock")
    connector = aiohttp.UnixConnector(str(socket), force_close=True)
    async with (
        aiohttp.ClientSession("http://engine", connector=connector) as engine,
        engine.get("/slots") as reply,
    ):
        return sum(slot["is_processing"] for slot in await reply.json())


async def cancel(session, cancel_id):
    async with session.post("/cancel", json={"cancel_id": cancel_id}) as reply:
        assert reply.status == 200
        return (await reply.json())["status"]


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["closed", "cancelled"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("phase", ["prompt", "answer"])
async def test_the_engine_stops_beside_another_stream(server, session, phase, stream, is_cancelled):
    name = f"{phase} {stream} {is_cancelled}"
    text = name + (LONG if phase == "prompt" else "")
    async with another_stream(session):
        answer = Answer(session, text, stream=stream, cancel_id=name)

        async def is_in_phase():
            if phase == "answer" and stream:
                return answer.received
            return await slots_at_work(server) == 2

        await until_async(is_in_phase, 60)
        if is_cancelled:
            assert await cancel(session, name) == "cancelled"
        else:
            await answer.leave()

        async def is_free():
            return await slots_at_work(server) == 1

        await until_async(is_free)
        if is_cancelled:
            await asyncio.wait({answer.task})
            is_begun = answer.status == 200
            assert is_begun or answer.status == 499
            told = answer.received.rpartition(b"data: ")[2] if is_begun else answer.received
            assert json.loads(told)["error"]["code"] == "request_cancelled"
            assert b"[DONE]" not in answer.received


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["closed", "cancelled"])
async def test_who_waits_in_the_queue_is_gone_at_once(session, is_cancelled):
    async with another_stream(session):
        second = Answer(session, "Another story.")
        await until_async(lambda: engine_is(session, busy=2))
        third = Answer(session, "A third.", cancel_id=f"queued {is_cancelled}")
        await until_async(lambda: engine_is(session, busy=2, queued=1))
        if is_cancelled:
            assert await cancel(session, f"queued {is_cancelled}") == "cancelled"
            await asyncio.wait({third.task})
            assert third.status == 499
        else:
            await third.leave()
        await until_async(lambda: engine_is(session, busy=2, queued=0))
        assert not second.task.done()
        await second.leave()


async def test_a_cancel_before_its_request_hits_it_and_not_the_retry(session):
    assert await cancel(session, "early") == "expected"
    hit = Answer(session, cancel_id="early")
    await asyncio.wait({hit.task})
    assert hit.status == 499
    assert await cancel(session, "early") == "ended"
    retry = Answer(session, cancel_id="early", max_tokens=2)
    await asyncio.wait({retry.task})
    assert retry.status == 200
    assert b"[DONE]" in retry.received


async def test_a_cancelled_message_and_response_and_completion_stop_too(session):
    text = "Tell a very long story."
    bodies = {
        "/v1/messages": {"max_tokens": 5000, "messages": [{"role": "user", "content": text}]},
        "/v1/responses": {"input": text},
        "/v1/completions": {"prompt": text},
    }
    for path, body in bodies.items():
        asked = session.post(path, json=body | {"model": BUILTIN, "cancel_id": path})
        reply = asyncio.create_task(asked.__aenter__())
        await until_async(lambda: engine_is(session, busy=1), 60)
        assert await cancel(session, path) == "cancelled"
        answer = await reply
        assert answer.status == 499
        answer.close()
        await until_async(lambda: engine_is(session, busy=0))
