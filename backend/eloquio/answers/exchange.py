"""One request that an engine answers: what it asked for, how it went, and how it is ended."""

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from fastapi import Request

from eloquio.engines.timeline import Timeline
from eloquio.errors import EloquioError, InvalidRequest

TraceLevel = Literal["", "request", "step"]
Outcome = Literal["running", "completed", "cancelled", "client_left", "failed"]

_TRACE_LEVELS: tuple[TraceLevel, ...] = get_args(TraceLevel)
_KEPT = 200
_PREFIX = re.compile(r"^/(v1|api/inference)(?=/)")


@dataclass
class Exchange:
    """Written by the generation and the answer of its request alone; read by who watches."""

    id: str
    """The request's."""
    route: str
    """Without its prefix: /chat/completions."""
    is_stream: bool = False
    trace_level: TraceLevel = ""
    cancel_id: str | None = None
    model: str | None = None
    outcome: Outcome = "running"
    http_status: int | None = None
    """What its client was told, once it was; a run has no such client."""
    error: EloquioError | None = None
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    """As OpenAI has it: prompt_tokens, completion_tokens, prompt_tokens_details."""
    timeline: Timeline = field(default_factory=Timeline)

    @classmethod
    def of(
        cls, request: Request, *, is_stream: bool = False, cancel_id: str | None = None
    ) -> "Exchange":
        """InvalidRequest for a level of trace that there isn't."""
        asked = request.headers.get("x-trace-level", "")
        level: TraceLevel | None = next((lv for lv in _TRACE_LEVELS if lv == asked), None)
        if level is None:
            raise InvalidRequest(
                f"There is no trace level {asked!r}.",
                param="X-Trace-Level",
                next_step="Send request or step, or leave the header out.",
            )
        return cls(
            id=request.scope["state"]["request_id"],
            route=_PREFIX.sub("", request.url.path),
            is_stream=is_stream,
            trace_level=level,
            cancel_id=cancel_id,
        )

    def __post_init__(self) -> None:
        self.timeline.keeps_steps = self.trace_level == "step"

    def ends(self, outcome: Outcome, error: EloquioError | None = None) -> None:
        if self.outcome == "running":
            self.outcome, self.error = outcome, error
            self.timeline.ends()

    def traced(self) -> dict[str, Any]:
        """The body's `trace` now that the answer has ended; empty where nobody asked for it."""
        self.timeline.ends()
        if not self.trace_level:
            return {}
        trace: dict[str, Any] = {"request_id": self.id, **self.timeline.phases()}
        if self.trace_level == "step":
            trace["steps_ms"] = list(self.timeline.steps_ms)
        return {"trace": trace}


class RequestLog:
    """The last requests, those under way among them, and who is told when one has ended."""

    def __init__(self, *observers: Callable[[Exchange], None]) -> None:
        self._running: list[Exchange] = []
        self._ended: deque[Exchange] = deque(maxlen=_KEPT)
        self._observers = list(observers)

    def tell(self, observer: Callable[[Exchange], None]) -> None:
        """Each exchange that ends from now on."""
        self._observers.append(observer)

    def begin(self, exchange: Exchange) -> None:
        self._running.append(exchange)

    def end(self, exchange: Exchange) -> None:
        self._running = [running for running in self._running if running is not exchange]
        self._ended.append(exchange)
        for observe in self._observers:
            observe(exchange)

    def newest(self) -> Iterator[Exchange]:
        everything = [*self._ended, *self._running]
        return iter(sorted(everything, key=lambda each: each.timeline.started, reverse=True))
