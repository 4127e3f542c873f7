"""One line in the log for each request that an engine answered: how it went, none of its text."""

import structlog

from eloquio.answers.exchange import Exchange
from eloquio.system.request_schema import TokenCounts

_PHASES = ("queue_ms", "first_token_ms", "decode_ms")

logger = structlog.get_logger(__name__)


def log_answer(exchange: Exchange) -> None:
    phases = exchange.timeline.phases()
    counts = TokenCounts.of(exchange)
    logger.info(
        "answered",
        id=exchange.id,
        route=exchange.route,
        model=exchange.model,
        outcome=exchange.outcome,
        code=None if exchange.error is None else exchange.error.code,
        finish_reason=exchange.finish_reason,
        **({} if counts is None else counts.model_dump()),
        **{name: phases[name] for name in _PHASES},
    )
