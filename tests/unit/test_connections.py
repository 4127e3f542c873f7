"""A connection whose other end stops reading, by what its transport says is left to send."""

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from eloquio.connections import connections

pytestmark = pytest.mark.anyio


class Transport(asyncio.Transport):
    """Says that so many bytes are left, one number at each look; of the last there is no end."""

    def __init__(self, *left_bytes):
        super().__init__()
        self._left_bytes = list(left_bytes)
        self.looks = 0
        self.is_aborted = asyncio.Event()

    def get_write_buffer_size(self):
        self.looks += 1
        return self._left_bytes.pop(0) if len(self._left_bytes) > 1 else self._left_bytes[0]

    def abort(self):
        self.is_aborted.set()


async def connected(transport, stalled_seconds):
    config = uvicorn.Config(lambda: None, log_config=None, ws="none")
    connection = connections(stalled_seconds)(config, ServerState(), {})
    connection.connection_made(transport)
    return connection


async def is_aborted(transport):
    async with asyncio.timeout(30):
        await transport.is_aborted.wait()


async def test_who_takes_nothing_any_more_is_cut_off():
    transport = Transport(100_000)
    connection = await connected(transport, 0.01)
    connection.pause_writing()
    await is_aborted(transport)
    assert transport.looks == 2


async def test_who_reads_slowly_is_not_cut_off_before_that_ends():
    transport = Transport(100_000, 99_999, 99_000, 50_000)
    connection = await connected(transport, 0.01)
    connection.pause_writing()
    await is_aborted(transport)
    assert transport.looks == 5


@pytest.mark.parametrize("way", ["it has read all", "it has left"])
async def test_nobody_looks_after_that(way):
    transport = Transport(100_000)
    connection = await connected(transport, 0.01)
    other = Transport(100_000)
    still_stalled = await connected(other, 0.05)
    connection.pause_writing()
    still_stalled.pause_writing()
    if way == "it has left":
        connection.connection_lost(OSError())
    else:
        connection.resume_writing()
    await is_aborted(other)
    assert not transport.is_aborted.is_set()
