"""The HTTP shapes of the requests that engines answered: how they went, nothing of their text."""

from typing import Any, Literal, Self

from pydantic import BaseModel

from eloquio.answers.exchange import Exchange, Outcome


class TokenCounts(BaseModel):
    prompt_tokens: int
    """Those in the cache among them."""
    completion_tokens: int
    cached_tokens: int

    @classmethod
    def of(cls, exchange: Exchange) -> Self | None:
        """None where the engine told of none: the answer was cut off, or is under way."""
        if (usage := exchange.usage) is None:
            return None
        return cls(
            prompt_tokens=_count(usage, "prompt_tokens"),
            completion_tokens=_count(usage, "completion_tokens"),
            cached_tokens=_count(usage.get("prompt_tokens_details"), "cached_tokens"),
        )


def _count(told: object, name: str) -> int:
    value = told.get(name) if isinstance(told, dict) else None
    return value if isinstance(value, int) else 0


class Phases(BaseModel):
    """In milliseconds; null for what wasn't reached, or isn't over."""

    queue_ms: float | None
    """Until an engine took it: the load of its model, and the wait for a slot."""
    media_ms: float | None
    prefill_ms: float | None
    first_token_ms: float | None
    """From the request's arrival."""
    decode_ms: float | None
    total_ms: float | None


class RequestCard(BaseModel):
    id: str
    """As in the reply's X-Request-Id, or the run's. A client's own may come twice."""
    route: str
    model: str | None
    """Null as long as no engine took it."""
    started: float
    """In seconds since 1970."""
    is_stream: bool
    status: Outcome
    http_status: int | None
    """What the client got, or would have had it stayed; null until that is known.

    A run has none: each of its readers has a reply of its own.
    """
    error_code: str | None
    finish_reason: str | None
    usage: TokenCounts | None
    timeline: Phases

    @classmethod
    def of(cls, exchange: Exchange) -> Self:
        return cls(**_fields(exchange))


class RequestReply(RequestCard):
    steps_ms: list[float]
    """When each part of a streamed answer came; kept where X-Trace-Level was step."""

    @classmethod
    def of(cls, exchange: Exchange) -> Self:
        return cls(**_fields(exchange), steps_ms=list(exchange.timeline.steps_ms))


class RequestList(BaseModel):
    object: Literal["list"] = "list"
    data: list[RequestCard]


def _fields(exchange: Exchange) -> dict[str, Any]:
    return {
        "id": exchange.id,
        "route": exchange.route,
        "model": exchange.model,
        "started": exchange.timeline.started,
        "is_stream": exchange.is_stream,
        "status": exchange.outcome,
        "http_status": exchange.http_status,
        "error_code": None if exchange.error is None else exchange.error.code,
        "finish_reason": exchange.finish_reason,
        "usage": TokenCounts.of(exchange),
        "timeline": exchange.timeline.phases(),
    }
