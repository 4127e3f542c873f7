"""What live runs leave on the disk, and what becomes of them when it fails."""

import asyncio

import pytest
from structlog.testing import capture_logs

from eloquio import sse
from eloquio.chat.runs import events
from eloquio.chat.runs.live_run import LiveRun
from eloquio.chat.runs.log import Run, RunLog
from eloquio.chat.runs.writer import RunWriter
from eloquio.store.database import open_database

pytestmark = pytest.mark.anyio


@pytest.fixture
async def database(tmp_path):
    database = await open_database(tmp_path)
    yield database
    await database.close()


@pytest.fixture
async def writer(database):
    writer = RunWriter(RunLog(database))
    yield writer
    await writer.close()


def live_run(name="run-1"):
    return LiveRun(Run(id=name, model="tiny", status="queued", created=1.0), b"{}")


async def until(condition):
    async with asyncio.timeout(5):
        while not await condition():
            await asyncio.sleep(0.01)


async def test_what_is_noted_is_kept_by_itself(writer, database):
    live, log = live_run(), RunLog(database)
    for number in range(5):
        live.add([b"%d" % number])
        writer.note(live)

    async def is_kept():
        return await log.last_number("run-1") == 5

    await until(is_kept)
    assert live.is_kept


async def test_a_flush_keeps_the_row_and_only_what_is_new(writer, database):
    live, log = live_run(), RunLog(database)
    for number in range(3):
        live.add([b"%d" % number])
        live.begin()
        writer.note(live)
        await writer.flush()
    assert await log.events("run-1") == [b"0", b"1", b"2"]
    assert (await log.read("run-1")).status == "running"


async def test_a_disk_that_fails_is_told_once_and_loses_nothing(writer, database):
    live, other, log = live_run(), live_run("run-2"), RunLog(database)
    live.add([b"1"])
    writer.note(live)
    await writer.flush()
    await database.execute("ALTER TABLE run_events RENAME TO elsewhere")
    with capture_logs() as lines:
        for _ in range(3):
            live.add([b"2"])
            other.add([b"1"])
            writer.note(live)
            writer.note(other)
            await writer.flush()
    assert sorted(line["run"] for line in lines) == ["run-1", "run-2"]
    assert live.is_failing_to_be_kept
    assert not live.is_kept
    await database.execute("ALTER TABLE elsewhere RENAME TO run_events")
    await writer.flush()
    assert not live.is_failing_to_be_kept
    assert live.is_kept
    assert await log.events("run-1") == [b"1", b"2", b"2", b"2"]
    assert await log.events("run-2") == [b"1", b"1", b"1"]


async def test_a_run_whose_row_was_lost_holds_up_no_other(writer, database):
    live, other, log = live_run(), live_run("run-2"), RunLog(database)
    writer.note(live)
    await writer.flush()
    await database.execute("DELETE FROM runs")
    live.add([b"1"])
    other.add([b"1"])
    writer.note(live)
    writer.note(other)
    await writer.flush()
    await writer.flush()
    assert await log.events("run-1") == await log.events("run-2") == [b"1"]


async def test_a_deleted_run_does_not_come_back(writer, database):
    live, log = live_run(), RunLog(database)
    live.add([b"1"])
    writer.note(live)
    await asyncio.gather(writer.flush(), writer.delete("run-1"))
    await writer.flush()
    assert await log.read("run-1") is None


async def test_a_reader_that_waits_hears_a_heartbeat_and_then_the_rest(monkeypatch):
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.01)
    live = live_run()
    stream = events._live(live, 0)
    assert (await anext(stream)).startswith(b":")
    assert (await anext(stream)).startswith(b":")
    live.add([b"1", b"2"])
    parts = [await anext(stream)]
    while parts[-1].startswith(b":"):
        parts.append(await anext(stream))
    assert parts[-1] == b"id: 1\ndata: 1\n\nid: 2\ndata: 2\n\n"
    live.close()
    assert [part async for part in stream if not part.startswith(b":")] == []
