"""As many streams as a room full of people reads at once, through one backend."""

import psutil
import pytest

from bench.held import hold, paced_server, paced_ways
from fixtures.running import until

pytestmark = pytest.mark.anyio

STREAMS = 200
CHUNKS = 75


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with paced_server(tmp_path_factory.mktemp("paced"), STREAMS) as running:
        yield running


async def test_every_chunk_of_two_hundred_streams_comes_whole_and_in_order(server):
    async with paced_ways(server) as (_, through):
        held = await hold(through, STREAMS, CHUNKS)
    assert len(held.readers) == STREAMS
    assert [reader for reader in held.readers if not reader.has_all(CHUNKS)] == []
    assert 0 < held.most_bytes < 200e6


async def test_streams_that_have_ended_leave_nothing_behind(server):
    backend = psutil.Process(server.process.pid)

    def connections():
        return len(backend.net_connections(kind="all"))

    before = connections()
    async with paced_ways(server) as (_, through):
        for _ in range(3):
            await hold(through, STREAMS, 2)
    until(lambda: connections() <= before)
    assert backend.memory_info().rss < 200e6
