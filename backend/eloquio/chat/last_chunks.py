"""The chunks that end a streamed answer: why it ended, and what it took."""

import json
import re
from dataclasses import replace
from typing import Any

from eloquio import sse
from eloquio.answers.exchange import Exchange
from eloquio.chat.usage import Usage
from eloquio.engines.event_blocks import data_of, events_of

# In a text a quote is escaped: none of these can come from what a model writes.
_USAGE = b'"choices":[]'
_REASON = re.compile(rb'"finish_reason":"(\w+)"')


class LastChunks:
    """Notes for the exchange how its answer ended, and makes its usage what the client asked for.

    An engine gives one chunk of usage for each choice, and each counts only its own tokens (seen
    with llama-server's builds 10434 and 11434): they become one.
    """

    def __init__(self, exchange: Exchange, choices: int, *, wants_usage: bool) -> None:
        self._exchange = exchange
        self._choices_left = choices
        self._wants_usage = wants_usage or exchange.trace_level != ""
        self._completion_tokens = 0

    def take(self, block: bytes) -> bytes:
        """The block, as the client gets it."""
        if b'"finish_reason":"' in block and (reason := _REASON.search(block)):
            self._exchange.finish_reason = reason[1].decode()
        if _USAGE not in block:
            return block
        return b"".join(self._taken(e) if _USAGE in e else e for e in events_of(block))

    def _taken(self, event: bytes) -> bytes:
        [data] = data_of(event)
        chunk: dict[str, Any] = json.loads(data)
        self._choices_left -= 1
        if isinstance(told := chunk.get("usage"), dict):
            usage = Usage.of(told)
            usage = replace(usage, completion=self._completion_tokens + usage.completion)
            self._completion_tokens = usage.completion
            # What else the engine tells of it stays.
            told |= {"completion_tokens": usage.completion, "total_tokens": usage.total}
            self._exchange.usage = told
        timeline = self._exchange.timeline
        timeline.prompt_ms = (chunk.get("timings") or {}).get("prompt_ms") or timeline.prompt_ms
        if self._choices_left > 0 or not self._wants_usage:
            return b""
        return sse.event(chunk | self._exchange.traced())
