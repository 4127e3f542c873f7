"""What is counted and measured, as Prometheus reads it."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from eloquio.answers.exchange import Exchange
from eloquio.chat.runs.shelf import RunShelf
from eloquio.engines.pool import Pool
from eloquio.system.request_schema import TokenCounts

# In seconds. A whole answer takes longer than its first token, and a load may come before both.
_ANSWER_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300, 900)
_WAIT_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

router = APIRouter(tags=["system"])


@router.get("/metrics", response_class=PlainTextResponse)
async def read_metrics(request: Request) -> Response:
    """What was counted since the start and what is now, as Prometheus reads it."""
    metrics: Metrics = request.app.state.metrics
    text, content_type = await metrics.text(request.headers.get("accept", ""))
    return Response(text, media_type=content_type)


class Metrics:
    """`model` is the label of what an engine took, and empty for what none did: a name that a
    stranger made up makes no series of its own.
    """

    def __init__(self, pool: Pool, runs: RunShelf) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "eloquio_requests",
            "Requests that an engine was asked to answer, by how they ended.",
            ("route", "model", "outcome", "code"),
            registry=self._registry,
        )
        self._request_seconds = self._histogram(
            "eloquio_request_seconds",
            "From a request's arrival to its end.",
            ("route", "model"),
            _ANSWER_BUCKETS,
        )
        self._first_token_seconds = self._histogram(
            "eloquio_first_token_seconds",
            "From a request's arrival to the first part of its answer.",
            ("route", "model"),
            _WAIT_BUCKETS,
        )
        self._queue_seconds = self._histogram(
            "eloquio_queue_seconds",
            "Until an engine took the request: a load of its model, and the wait for a slot.",
            ("model",),
            _WAIT_BUCKETS,
        )
        self._tokens = Counter(
            "eloquio_tokens",
            "Tokens, as engines counted them; those cached are among those of the prompt.",
            ("model", "kind"),
            registry=self._registry,
        )
        self._now = _Now(pool, runs)
        ProcessCollector(registry=self._registry)

    def observe(self, exchange: Exchange) -> None:
        """Counts a request that has ended."""
        route, model, timeline = exchange.route, exchange.model or "", exchange.timeline
        code = "" if exchange.error is None else exchange.error.code
        self._requests.labels(route, model, exchange.outcome, code).inc()
        if timeline.ended_ms is not None:
            self._request_seconds.labels(route, model).observe(timeline.ended_ms / 1000)
        if timeline.first_token_ms is not None:
            self._first_token_seconds.labels(route, model).observe(timeline.first_token_ms / 1000)
        if timeline.queue_ms is not None:
            self._queue_seconds.labels(model).observe(timeline.queue_ms / 1000)
        if (counts := TokenCounts.of(exchange)) is not None:
            self._tokens.labels(model, "prompt").inc(counts.prompt_tokens)
            self._tokens.labels(model, "cached").inc(counts.cached_tokens)
            self._tokens.labels(model, "completion").inc(counts.completion_tokens)

    async def text(self, accept: str) -> tuple[bytes, str]:
        """All of it, in the newest format that `accept` takes, and that format's content type."""
        encode, content_type = choose_encoder(accept)
        everything = _Everything(self._registry, list(self._now.collect()))
        # Some hundred series take longer to write than a token may wait.
        return await asyncio.to_thread(encode, everything), content_type

    def _histogram(
        self, name: str, told: str, labels: tuple[str, ...], buckets: tuple[float, ...]
    ) -> Histogram:
        return Histogram(name, told, labels, buckets=buckets, registry=self._registry)


@dataclass(frozen=True)
class _Everything:
    counted: CollectorRegistry
    now: Sequence[Metric]

    def collect(self) -> Iterator[Metric]:
        return chain(self.counted.collect(), self.now)


class _Now:
    """What is true at the moment of asking, read from those who own it."""

    def __init__(self, pool: Pool, runs: RunShelf) -> None:
        self._pool = pool
        self._runs = runs

    def collect(self) -> Iterator[Metric]:
        yield from self._engines()
        yield self._memory()
        yield self._runs_under_way()

    def _engines(self) -> Iterator[Metric]:
        requests = GaugeMetricFamily(
            "eloquio_engine_requests",
            "Requests that an engine answers, and that wait for it.",
            labels=("model", "state"),
        )
        up = GaugeMetricFamily("eloquio_engine_up", "Whether it can answer.", labels=("model",))
        restarts = CounterMetricFamily(
            "eloquio_engine_restarts",
            "Starts after the first, since its model was loaded.",
            labels=("model",),
        )
        resident = GaugeMetricFamily(
            "eloquio_engine_resident_bytes",
            "Main memory that an engine's process holds.",
            labels=("model",),
        )
        for engine in self._pool.engines:
            model = engine.spec.model
            requests.add_metric((model, "running"), engine.busy)
            requests.add_metric((model, "queued"), engine.waiting)
            up.add_metric((model,), engine.is_serving)
            restarts.add_metric((model,), engine.restarts)
            if (held_bytes := engine.resident_bytes()) is not None:
                resident.add_metric((model,), held_bytes)
        yield from (requests, up, restarts, resident)

    def _memory(self) -> Metric:
        memory = GaugeMetricFamily(
            "eloquio_memory_bytes",
            "Main memory and each accelerator's, and what models were promised of them all.",
            labels=("device", "kind"),
        )
        ledger = self._pool.ledger()
        memory.add_metric(("main", "total"), ledger.main.total_bytes)
        memory.add_metric(("main", "free"), ledger.main.available_bytes)
        for device in ledger.devices:
            memory.add_metric((device.id, "total"), device.total_bytes)
            memory.add_metric((device.id, "free"), device.free_bytes)
        memory.add_metric(("all", "promised"), ledger.promised_bytes)
        return memory

    def _runs_under_way(self) -> Metric:
        runs = GaugeMetricFamily("eloquio_runs", "Runs under way.", labels=("status",))
        under_way = [live.run.status for live in self._runs.under_way()]
        for status in ("queued", "running"):
            runs.add_metric((status,), under_way.count(status))
        return runs
