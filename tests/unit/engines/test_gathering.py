import asyncio

import aiohttp
import pytest

from eloquio.engines.gathering import LONGEST_SECONDS, Gathering
from eloquio.engines.relay import stream
from eloquio.errors import EngineCrashed

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
CHUNKED = HEAD.removesuffix(b"\r\n") + b"transfer-encoding: chunked\r\n\r\n"
DONE = b"data: [DONE]\n\n"


class Connection:
    """A transport that only remembers whether it is read."""

    def __init__(self):
        self.is_read = True
        self.rests = 0
        self.is_closed = False

    def is_reading(self):
        return self.is_read

    def is_closing(self):
        return self.is_closed

    def pause_reading(self):
        self.is_read = False
        self.rests += 1

    def resume_reading(self):
        assert not self.is_closed
        self.is_read = True


@pytest.fixture(scope="module")
def anyio_backend():
    """The loop that the server runs on, whose transports are its own."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
async def session(tmp_path):
    connector = aiohttp.UnixConnector(str(tmp_path / "engine"), force_close=True)
    async with aiohttp.ClientSession("http://engine", connector=connector) as session:
        yield session


def event(number):
    return b'data: {"created":1,"choices":[{"delta":{"content":"%d"}}]}\n\n' % number


async def test_a_fast_stream_comes_whole_in_fewer_blocks_and_its_first_token_at_once(
    tmp_path, session
):
    has_first = asyncio.Event()

    async def say(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + event(0))
        # Nothing follows until the first has arrived: were it held, this would never end.
        await has_first.wait()
        for number in range(1, 1_000):
            writer.write(event(number))
            await asyncio.sleep(0.0005)
        writer.write(DONE)
        writer.close()

    async with await asyncio.start_unix_server(say, tmp_path / "engine"):
        blocks = []
        async for block in stream(None, session, "/v1/chat/completions", b"{}"):
            blocks.append(block)
            has_first.set()

    assert blocks[0] == event(0)
    assert b"".join(blocks) == b"".join(event(number) for number in range(1_000))
    assert len(blocks) < 500


async def test_an_engine_that_dies_during_a_rest_is_told_as_one_that_died(
    tmp_path, session, monkeypatch
):
    is_resting, has_died = asyncio.Event(), asyncio.Event()

    async def say(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        # In chunks, as llama-server sends it, and whole ones.
        said = event(0)
        writer.write(CHUNKED + b"%x\r\n%b\r\n" % (len(said), said))
        await is_resting.wait()
        writer.transport.abort()
        has_died.set()

    async def rest(gathering):
        is_resting.set()
        await has_died.wait()
        # Until the end of the connection has arrived here, too.
        while not gathering._transport.is_closing():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)

    class Engine:
        async def cause_of_loss(self, _):
            return EngineCrashed("It died.")

    monkeypatch.setattr(Gathering, "rest", rest)
    async with await asyncio.start_unix_server(say, tmp_path / "engine"):
        with pytest.raises(EngineCrashed):
            async for _ in stream(Engine(), session, "/v1/chat/completions", b"{}"):
                pass


async def test_a_stream_slower_than_a_screen_is_never_held():
    connection = Connection()
    gathering = Gathering(connection)
    for _ in range(10):
        await asyncio.sleep(2 * LONGEST_SECONDS)
        await gathering.rest()
    assert connection.rests == 0


async def aged_gathering(connection):
    gathering = Gathering(connection)
    await gathering.rest()
    await asyncio.sleep(10 * LONGEST_SECONDS)
    await gathering.rest()
    assert connection.rests == 0
    return gathering


async def test_a_long_wait_for_the_first_token_makes_no_rest_longer(monkeypatch):
    rests = []

    async def unread(_, seconds):
        rests.append(seconds)

    monkeypatch.setattr(Gathering, "_unread", unread)
    gathering = Gathering(Connection())
    await asyncio.sleep(10 * LONGEST_SECONDS)
    for _ in range(3):
        await gathering.rest()
    assert [seconds for seconds in rests if seconds > LONGEST_SECONDS / 2] == []


async def test_a_fast_stream_is_read_again_after_each_rest():
    connection = Connection()
    gathering = await aged_gathering(connection)
    for _ in range(20):
        await gathering.rest()
        assert connection.is_read
    assert connection.rests > 0


async def rest_of(connection):
    """A rest that has begun."""
    gathering = await aged_gathering(connection)
    resting = asyncio.create_task(gathering.rest())
    async with asyncio.timeout(20):
        while connection.is_read:
            await asyncio.sleep(0)
            if resting.done():
                resting = asyncio.create_task(gathering.rest())
    return resting


async def test_who_leaves_during_a_rest_leaves_at_once():
    connection = Connection()
    resting = await rest_of(connection)
    resting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await resting
    assert connection.is_read


async def test_a_connection_that_closes_during_a_rest_is_left_alone():
    connection = Connection()
    resting = await rest_of(connection)
    connection.is_closed = True
    await resting
