"""Who is let in, who waits, and who is told to come back: before any byte of an answer."""

import asyncio

import aiohttp
import httpx2 as httpx
import psutil
import pytest

from fixtures.pools import until
from fixtures.running import place, serving

pytestmark = pytest.mark.anyio

QUESTION = [{"role": "user", "content": "Go on."}]


@pytest.fixture(scope="module")
def server(tmp_path_factory, tiny_model):
    home = tmp_path_factory.mktemp("admission") / "home"
    place(tiny_model, home / "models" / "tiny.gguf")
    settings = {"ELOQUIO_MAX_QUEUED": "2", "ELOQUIO_STALLED_READER_SECONDS": "600"}
    with serving(home, "--no-load-on-start", **settings) as running:
        body = {"model_path": "tiny", "n_parallel": 1}
        httpx.post(f"{running.url}/v1/load", json=body, timeout=60).raise_for_status()
        yield running


class Asked:
    def __init__(self, session, max_tokens=7000, **fields):
        self.body = {"messages": QUESTION, "stream": True, "max_tokens": max_tokens} | fields
        self.received = b""
        self.task = asyncio.create_task(self.read(session))

    async def read(self, session):
        async with session.post("/v1/chat/completions", json=self.body) as reply:
            async for piece in reply.content.iter_any():
                self.received += piece
            return reply.status, reply.headers


async def engine(session):
    async with session.get("/v1/status") as reply:
        return (await reply.json())["engines"][0]


async def until_engine_is(session, **expected):
    async with asyncio.timeout(30):
        while not expected.items() <= (await engine(session)).items():
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_full_queue_is_told_by_a_real_429_and_the_others_are_answered(session, stream):
    going = Asked(session)
    await until(lambda: going.received)
    waiting = [Asked(session, max_tokens=3), Asked(session, max_tokens=3)]
    await until_engine_is(session, busy=1, queued=2)
    status, headers = await Asked(session, stream=stream).task
    assert status == 429
    assert int(headers["retry-after"]) > 0
    assert headers["content-type"] == "application/json"
    assert not any(asked.received for asked in waiting)
    going.task.cancel()
    for asked in waiting:
        assert (await asked.task)[0] == 200
        assert asked.received.endswith(b"data: [DONE]\n\n")


async def test_the_queue_is_served_in_the_order_of_coming(session):
    going = Asked(session)
    await until(lambda: going.received)
    ended = []
    queue = []
    for number in range(2):
        asked = Asked(session, max_tokens=2)
        asked.task.add_done_callback(lambda _, number=number: ended.append(number))
        queue.append(asked)
        await until_engine_is(session, queued=number + 1)
    going.task.cancel()
    await asyncio.gather(*(asked.task for asked in queue))
    assert ended == [0, 1]


async def test_what_a_slow_reader_has_not_read_waits_in_the_engine_and_not_in_the_backend(
    session, server
):
    backend = psutil.Process(server.process.pid)
    body = {"messages": QUESTION, "stream": True, "max_tokens": 8000}
    body |= {"logprobs": True, "top_logprobs": 20}
    async with session.post("/v1/chat/completions", json=body) as reply:
        received = len(await reply.content.readany())
        before = backend.memory_info().rss
        async with asyncio.timeout(120):
            while await slots_at_work(server):
                await asyncio.sleep(0.1)
        # The engine has written all of it, and the backend has not yet been given the end.
        assert (await engine(session))["busy"] == 1
        assert backend.memory_info().rss - before < 5_000_000
        async for piece in reply.content.iter_any():
            received += len(piece)
    assert piece.endswith(b"data: [DONE]\n\n")
    assert received > 15_000_000
    await until_engine_is(session, busy=0)


async def slots_at_work(server):
    """By what the engine itself says."""
    [socket] = (server.home / "run").glob("*/*.sock")
    connector = aiohttp.UnixConnector(str(socket), force_close=True)
    async with (
        aiohttp.ClientSession("http://engine", connector=connector) as engine,
        engine.get("/slots") as reply,
    ):
        return sum(slot["is_processing"] for slot in await reply.json())


async def test_what_does_not_fit_the_context_is_refused_with_both_numbers(session):
    long = [{"role": "user", "content": "word " * 9000}]
    async with session.post("/v1/chat/completions", json={"messages": long}) as reply:
        assert reply.status == 400
        error = (await reply.json())["error"]
    assert error["code"] == "context_length_exceeded"
    assert "8192" in error["message"]
    assert any(int(word) > 9000 for word in error["message"].split() if word.isdigit())
