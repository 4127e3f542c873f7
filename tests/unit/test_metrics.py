"""What Prometheus reads."""

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as read_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as read_text

from eloquio.answers.exchange import Exchange
from eloquio.chat.runs.live_run import LiveRun
from eloquio.chat.runs.log import Run, RunLog
from eloquio.chat.runs.shelf import RunShelf
from eloquio.engines.timeline import Timeline
from eloquio.errors import EngineCrashed, ModelNotFound
from eloquio.metrics import Metrics
from eloquio.store.database import open_database
from fixtures.pools import load, pool_of

pytestmark = pytest.mark.anyio

USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 7,
    "total_tokens": 37,
    "prompt_tokens_details": {"cached_tokens": 12},
}


@pytest.fixture
async def pool(settings, home, tiny_model):
    shelf = settings.model_copy(update={"model_dirs": (tiny_model.parent,)})
    async with pool_of(shelf) as pool:
        yield pool


@pytest.fixture
async def runs(tmp_path):
    database = await open_database(tmp_path)
    yield RunShelf(RunLog(database))
    await database.close()


@pytest.fixture
def metrics(pool, runs):
    return Metrics(pool, runs)


def exchange(**fields):
    values = {"id": "1", "route": "/chat/completions", "model": "tiny", "outcome": "completed"}
    return Exchange(**values | fields)


async def samples(metrics):
    """Every value by its name and the values of its labels, in the order of their names."""
    text, _ = await metrics.text("")
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in read_text(text.decode())
        for sample in family.samples
    }


async def test_an_answer_is_counted_with_its_tokens(metrics):
    metrics.observe(exchange(usage=USAGE))
    metrics.observe(exchange(usage=USAGE))
    told = await samples(metrics)
    assert told["eloquio_requests_total", "", "tiny", "completed", "/chat/completions"] == 2
    assert told["eloquio_tokens_total", "prompt", "tiny"] == 60
    assert told["eloquio_tokens_total", "cached", "tiny"] == 24
    assert told["eloquio_tokens_total", "completion", "tiny"] == 14


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": None}, {"prompt_tokens_details": "odd"}])
async def test_a_usage_of_an_odd_shape_counts_no_tokens(metrics, usage):
    metrics.observe(exchange(usage=usage))
    assert (await samples(metrics))["eloquio_tokens_total", "prompt", "tiny"] == 0


async def test_a_failure_is_counted_by_its_code(metrics):
    error = EngineCrashed("The engine crashed.")
    metrics.observe(exchange(outcome="failed", error=error))
    told = await samples(metrics)
    assert told["eloquio_requests_total", error.code, "tiny", "failed", "/chat/completions"] == 1


async def test_names_that_no_engine_took_make_no_series(metrics):
    for _ in range(3):
        error = ModelNotFound("There is no such model.")
        metrics.observe(exchange(model=None, outcome="failed", error=error))
    told = await samples(metrics)
    assert told["eloquio_requests_total", error.code, "", "failed", "/chat/completions"] == 3


async def test_what_was_reached_is_measured_in_seconds(metrics):
    whole = Timeline(asked_ms=500, first_token_ms=2000, ended_ms=8000)
    metrics.observe(exchange(timeline=whole))
    metrics.observe(exchange(outcome="cancelled", timeline=Timeline(ended_ms=40)))
    told = await samples(metrics)
    assert told["eloquio_queue_seconds_sum", "tiny"] == 0.5
    assert told["eloquio_queue_seconds_count", "tiny"] == 1
    assert told["eloquio_first_token_seconds_sum", "tiny", "/chat/completions"] == 2
    assert told["eloquio_first_token_seconds_count", "tiny", "/chat/completions"] == 1
    assert told["eloquio_request_seconds_sum", "tiny", "/chat/completions"] == 8.04
    assert told["eloquio_request_seconds_bucket", "0.05", "tiny", "/chat/completions"] == 1
    assert told["eloquio_request_seconds_bucket", "10.0", "tiny", "/chat/completions"] == 2


async def test_the_engines_are_told_as_they_are_when_asked(metrics, pool):
    assert not [name for name, *_ in await samples(metrics) if name.startswith("eloquio_engine")]
    await load(pool, "tiny")
    async with pool.lease("tiny"):
        told = await samples(metrics)
    assert told["eloquio_engine_up", "tiny"] == 1
    assert told["eloquio_engine_requests", "tiny", "running"] == 1
    assert told["eloquio_engine_requests", "tiny", "queued"] == 0
    assert told["eloquio_engine_restarts_total", "tiny"] == 0
    assert told["eloquio_engine_resident_bytes", "tiny"] > 1_000_000
    assert (await samples(metrics))["eloquio_engine_requests", "tiny", "running"] == 0
    await pool.unload("tiny")
    assert not [name for name, *_ in await samples(metrics) if name.startswith("eloquio_engine")]


async def test_the_machines_memory_is_told(metrics, pool):
    told = await samples(metrics)
    assert told["eloquio_memory_bytes", "main", "total"] == pool.ledger().main.total_bytes
    assert 0 < told["eloquio_memory_bytes", "main", "free"] < pool.ledger().main.total_bytes
    assert told["eloquio_memory_bytes", "all", "promised"] == 0
    assert told["process_resident_memory_bytes",] > 1_000_000


async def test_runs_under_way_are_told_by_their_status(metrics, runs):
    live = LiveRun(Run(id="run-1", model="tiny", status="queued", created=1.0), b"{}")
    runs.add(live)
    told = await samples(metrics)
    assert (told["eloquio_runs", "queued"], told["eloquio_runs", "running"]) == (1, 0)
    live.begin()
    told = await samples(metrics)
    assert (told["eloquio_runs", "queued"], told["eloquio_runs", "running"]) == (0, 1)
    live.close()
    assert (await samples(metrics))["eloquio_runs", "running"] == 0


async def test_two_servers_in_one_process_count_apart(pool, runs):
    one, other = Metrics(pool, runs), Metrics(pool, runs)
    one.observe(exchange())
    key = ("eloquio_requests_total", "", "tiny", "completed", "/chat/completions")
    assert key in await samples(one)
    assert key not in await samples(other)


async def test_who_takes_openmetrics_gets_it(metrics):
    metrics.observe(exchange())
    text, content_type = await metrics.text("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert "eloquio_requests" in {family.name for family in read_openmetrics(text.decode())}
    _, plain = await metrics.text("*/*")
    assert plain.startswith("text/plain")
