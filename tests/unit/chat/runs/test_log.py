"""Runs in SQLite."""

from dataclasses import replace

import pytest

from eloquio.chat.runs.log import Batch, Run, RunLog
from eloquio.store.database import open_database

pytestmark = pytest.mark.anyio

REQUEST = b'{"messages":[]}'


def run(number, **fields):
    values = {"status": "queued", "created": float(number)} | fields
    return Run(id=f"run-{number}", model="tiny", **values)


@pytest.fixture
async def database(tmp_path):
    database = await open_database(tmp_path)
    yield database
    await database.close()


@pytest.fixture
def log(database):
    return RunLog(database)


async def test_a_run_is_read_as_it_was_written(log):
    asked = run(1)
    await log.insert(asked, REQUEST)
    assert await log.read("run-1") == asked
    assert await log.request("run-1") == REQUEST
    over = replace(
        asked, status="failed", ended=2.5, finish_reason="length", usage={"a": 1}, error={"b": 2}
    )
    await log.update(over)
    assert await log.read("run-1") == over
    assert await log.read("run-2") is None


async def test_events_are_read_as_they_were_written_from_any_number(log):
    await log.insert(run(1), REQUEST)
    events = [f'{{"é":{number}}}'.encode() for number in range(1, 8)]
    await log.append([Batch("run-1", 1, events[:3])])
    await log.append([Batch("run-1", 4, events[3:4]), Batch("run-1", 5, events[4:])])
    assert await log.events("run-1") == events
    assert await log.last_number("run-1") == 7
    batches = [batch async for batch in log.batches_after("run-1", 3)]
    assert [batch.first_number for batch in batches] == [4, 5]
    assert [event for batch in batches for event in batch.events] == events[3:]
    assert [batch async for batch in log.batches_after("run-1", 7)] == []


async def test_a_write_that_is_repeated_changes_nothing(log):
    await log.insert(run(1), REQUEST)
    await log.append([Batch("run-1", 1, [b"1", b"2"])])
    await log.insert(run(1, status="running"), REQUEST)
    await log.append([Batch("run-1", 1, [b"1", b"2", b"3"])])
    assert await log.events("run-1") == [b"1", b"2", b"3"]
    assert (await log.read("run-1")).status == "running"


async def test_a_number_that_was_left_out_is_none_of_the_runs(log):
    await log.insert(run(1), REQUEST)
    await log.append([Batch("run-1", 1, [b"1", b"2"]), Batch("run-1", 1001, [b"3"])])
    known = [
        number for number in (1, 2, 3, 1000, 1001, 1002) if await log.has_number("run-1", number)
    ]
    assert known == [1, 2, 1001]


async def test_the_newest_come_first_page_by_page(log):
    for number in range(1, 6):
        await log.insert(run(number), REQUEST)
    assert [one.id for one in await log.newest(2)] == ["run-5", "run-4"]
    assert [one.id for one in await log.newest(9, "run-4")] == ["run-3", "run-2", "run-1"]
    assert await log.newest(9, "run-1") == []


async def test_what_was_asked_is_read_for_no_list(log, database):
    await log.insert(run(1), REQUEST)
    statements = []
    await database.set_trace_callback(statements.append)
    await log.newest(9)
    await log.newest(9, "run-2")
    await log.read("run-1")
    assert len(statements) == 3
    assert not [statement for statement in statements if "request" in statement]


async def test_a_run_is_deleted_with_its_events(log, database):
    for number in (1, 2):
        await log.insert(run(number), REQUEST)
        await log.append([Batch(f"run-{number}", 1, [b"1"])])
    await log.delete("run-1")
    async with database.execute("SELECT run_id FROM run_events") as cursor:
        assert [row[0] async for row in cursor] == ["run-2"]


async def test_only_the_newest_that_have_ended_are_kept(log):
    await log.insert(run(1), REQUEST)
    for number in range(2, 7):
        await log.insert(run(number, status="completed", ended=9.0), REQUEST)
    await log.delete_old(kept=2)
    assert [one.id for one in await log.newest(9)] == ["run-6", "run-5", "run-1"]


async def test_what_was_under_way_is_interrupted_and_nothing_else(log):
    statuses = ("queued", "running", "completed", "cancelled", "failed")
    for number, status in enumerate(statuses):
        await log.insert(run(number, status=status), REQUEST)
    await log.interrupt_all({"code": "run_interrupted"})
    told = {one.id: (one.status, one.error) for one in await log.newest(9)}
    interrupted = ("interrupted", {"code": "run_interrupted"})
    assert told["run-0"] == told["run-1"] == interrupted
    assert [told[f"run-{number}"] for number in (2, 3, 4)] == [
        (status, None) for status in statuses[2:]
    ]
