"""What engines write reaches whoever reads it, each line once."""

import asyncio
import json
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from eloquio.engines.broadcast import Broadcast
from eloquio.engines.log import LogRing
from eloquio.system.engine_logs import LinesSkipped, LogLine, LogReader
from eloquio.system.log_routes import log_events


@dataclass(eq=False)
class Engine:
    """As much of one as a reader looks at."""

    model: str = "tiny"
    log: LogRing = field(default_factory=LogRing)

    @property
    def spec(self):
        return SimpleNamespace(model=self.model)

    def writes(self, *lines):
        self.log.feed("".join(f"{line}\n" for line in lines).encode())

    def starts_anew(self):
        self.log = LogRing()


def lines(events):
    return [event.line for event in events]


def test_the_last_lines_come_first_and_then_what_is_new():
    engine = Engine()
    engine.writes("1", "2", "3")
    reader = LogReader(tail=2)
    assert reader.read([engine]) == [
        LogLine(model="tiny", line="2"),
        LogLine(model="tiny", line="3"),
    ]
    assert reader.read([engine]) == []
    engine.writes("4")
    assert lines(reader.read([engine])) == ["4"]


def test_without_a_tail_only_what_is_new_comes():
    engine = Engine()
    engine.writes("1")
    reader = LogReader(tail=0)
    assert reader.read([engine]) == []
    engine.writes("2")
    assert lines(reader.read([engine])) == ["2"]


def test_a_tail_longer_than_the_log_is_all_of_it_and_nothing_is_called_lost():
    engine = Engine(log=LogRing(capacity=2))
    engine.writes("1", "2", "3")
    assert lines(LogReader(tail=500).read([engine])) == ["2", "3"]


def test_lines_that_were_overrun_are_counted():
    engine = Engine(log=LogRing(capacity=3))
    reader = LogReader(tail=0)
    reader.read([engine])
    engine.writes("1", "2", "3", "4", "5")
    skipped, *rest = reader.read([engine])
    assert skipped == LinesSkipped(model="tiny", skipped=2)
    assert lines(rest) == ["3", "4", "5"]


def test_the_end_of_one_start_comes_before_the_next():
    engine = Engine()
    reader = LogReader(tail=100)
    engine.writes("old 1")
    reader.read([engine])
    engine.writes("old 2")
    engine.starts_anew()
    engine.writes("new 1")
    assert lines(reader.read([engine])) == ["old 2", "new 1"]


def test_an_engine_that_came_later_is_read_from_its_first_line():
    reader = LogReader(tail=1)
    reader.read([])
    engine = Engine()
    engine.writes("1", "2", "3")
    assert lines(reader.read([engine])) == ["1", "2", "3"]


def test_the_last_words_of_an_engine_that_left_are_read_once():
    engine = Engine()
    reader = LogReader(tail=0)
    reader.read([engine])
    engine.writes("bye")
    assert lines(reader.read([])) == ["bye"]
    assert reader.read([]) == []


def test_only_the_model_that_was_asked_for_is_read():
    one, other = Engine("one"), Engine("other")
    one.writes("1")
    other.writes("2")
    assert lines(LogReader(100, "other").read([one, other])) == ["2"]
    assert LogReader(100, "neither").read([one, other]) == []


def test_no_absolute_path_leaves():
    engine = Engine()
    engine.writes("loading /home/somebody/models/tiny.gguf")
    assert lines(LogReader(100).read([engine])) == ["loading tiny.gguf"]


@pytest.fixture
def pool():
    return SimpleNamespace(changed=Broadcast(), engines=[Engine()])


@pytest.mark.anyio
async def test_a_stream_goes_on_until_the_server_ends(pool):
    [engine] = pool.engines
    engine.writes("1", "2")
    stream = log_events(pool, LogReader(100), follow=True)
    async with asyncio.timeout(20):
        first = (await anext(stream)).decode().strip().split("\n\n")
        told = [json.loads(event.removeprefix("data: ")) for event in first]
        assert told == [{"model": "tiny", "line": "1"}, {"model": "tiny", "line": "2"}]
        engine.writes("3")
        assert b'"line":"3"' in await anext(stream)
        pool.changed.close()
        assert [event async for event in stream] == []


@pytest.mark.anyio
async def test_who_does_not_follow_gets_what_there_is(pool):
    pool.engines[0].writes("1")
    async with asyncio.timeout(20):
        stream = log_events(pool, LogReader(100), follow=False)
        assert len([event async for event in stream]) == 1


@pytest.mark.anyio
async def test_a_silent_stream_shows_that_it_lives(pool):
    stream = log_events(pool, LogReader(100), follow=True, heartbeat_seconds=0.0)
    async with asyncio.timeout(20):
        assert (await anext(stream)).startswith(b":")
    await stream.aclose()
