"""A chat completion's chunks, made the events that tell how a message grows."""

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eloquio.chat.messages.stops import StopScanner
from eloquio.chat.named_events import Event
from eloquio.chat.usage import Usage
from eloquio.errors import EngineFault

# Anthropic signs thinking, and clients drop what isn't signed. Nothing here looks at it.
SIGNATURE = "eloquio"
_NOT_OF_AN_ID = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass
class _Open:
    """The block that is being told."""

    kind: Literal["text", "thinking", "tool_use"]
    call: int | None = None
    """Which of the calls it is."""


class MessageEvents:
    """Takes the chunks in order. Blocks are told one after the other, each whole."""

    def __init__(
        self,
        *,
        max_tokens: int,
        stops: Sequence[str] = (),
        tells_thinking: bool = True,
    ) -> None:
        self.usage = Usage()
        """What the prompt and the answer took, as far as the engine has told."""
        self.is_over = False
        """The message has come to its end, whatever else the engine would say."""
        self._max_tokens = max_tokens
        self._scanner = StopScanner(stops)
        self._tells_thinking = tells_thinking
        self._has_begun = False
        self._model: str | None = None
        self._open: _Open | None = None
        self._next_index = 0
        self._calls: set[int] = set()
        self._finish_reason: str | None = None

    def feed(self, chunk: Mapping[str, Any]) -> list[Event]:
        """The events of one chunk. EngineFault where it goes back to a call that had ended."""
        return [] if self.is_over else list(self._told_by(chunk))

    def end(self, trace: Mapping[str, Any] | None = None) -> list[Event]:
        """The last events, once the engine's answer is whole or the message is over.

        EngineFault where the engine didn't say why it ended.
        """
        if not self.is_over and self._finish_reason is None:
            raise EngineFault("The engine ended its answer without saying why.")
        return list(self._told_at_the_end(trace))

    # Told -----------------------------------------------------------------------------------

    def _told_by(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        self._count(chunk)
        self._model = chunk.get("model") or self._model
        choice: Mapping[str, Any] = next(iter(chunk.get("choices") or ()), {})
        delta = choice.get("delta") or {}
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        thinking, text = delta.get("reasoning_content"), delta.get("content")
        calls = delta.get("tool_calls") or ()
        if not self._has_begun and (thinking or text or calls or self.usage.prompt):
            yield from self._begun()
        if thinking:
            yield from self._thinking(thinking)
        if text:
            yield from self._text(text)
        for piece in () if self.is_over else calls:
            yield from self._call(piece)

    def _count(self, chunk: Mapping[str, Any]) -> None:
        if timings := chunk.get("timings"):
            self.usage = Usage.of_timings(timings)
        if told := chunk.get("usage"):
            self.usage = Usage.of(told)

    def _begun(self) -> Iterator[Event]:
        self._has_begun = True
        yield {
            "type": "message_start",
            "message": {
                "id": f"msg_{uuid.uuid4().hex}",
                "type": "message",
                "role": "assistant",
                "model": self._model,
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "stop_details": None,
                "usage": self.usage.of_message(),
            },
        }
        yield {"type": "ping"}

    def _thinking(self, piece: str) -> Iterator[Event]:
        yield from self._rest_of_text()
        yield from self._in_block("thinking", {"thinking": "", "signature": ""})
        if self._tells_thinking:
            yield self._delta({"type": "thinking_delta", "thinking": piece})

    def _text(self, piece: str) -> Iterator[Event]:
        yield from self._told_text(self._scanner.feed(piece))
        self.is_over = self._scanner.found is not None

    def _rest_of_text(self) -> Iterator[Event]:
        """What was held back is told after all: no stop sequence spans two blocks."""
        yield from self._told_text(self._scanner.end())

    def _told_text(self, text: str) -> Iterator[Event]:
        if text:
            yield from self._in_block("text", {"text": ""})
            yield self._delta({"type": "text_delta", "text": text})

    def _call(self, piece: Mapping[str, Any]) -> Iterator[Event]:
        yield from self._rest_of_text()
        call = piece.get("index") or 0
        function = piece.get("function") or {}
        if self._open is None or self._open.call != call:
            if call in self._calls:
                raise EngineFault("The engine went back to a tool call that had ended.")
            self._calls.add(call)
            block: dict[str, Any] = {
                "id": _call_id(piece.get("id")),
                "name": function.get("name"),
                "input": {},
            }
            yield from self._in_block("tool_use", block, call)
        if arguments := function.get("arguments"):
            yield self._delta({"type": "input_json_delta", "partial_json": arguments})

    def _told_at_the_end(self, trace: Mapping[str, Any] | None) -> Iterator[Event]:
        if not self._has_begun:
            yield from self._begun()
        yield from self._rest_of_text()
        yield from self._closed()
        told: Event = {
            "type": "message_delta",
            "delta": {
                "stop_reason": self._stop_reason(),
                "stop_sequence": self._scanner.found,
                "stop_details": None,
            },
            "usage": self.usage.of_message(),
        }
        yield told if trace is None else told | {"trace": dict(trace)}
        yield {"type": "message_stop"}

    # Blocks ---------------------------------------------------------------------------------

    def _in_block(
        self,
        kind: Literal["text", "thinking", "tool_use"],
        empty: Mapping[str, Any],
        call: int | None = None,
    ) -> Iterator[Event]:
        """Begins a block, unless it is the one that is open."""
        if self._open == (wanted := _Open(kind, call)):
            return
        yield from self._closed()
        self._open = wanted
        yield {
            "type": "content_block_start",
            "index": self._next_index,
            "content_block": {"type": kind, **empty},
        }

    def _closed(self) -> Iterator[Event]:
        if self._open is None:
            return
        if self._open.kind == "thinking":
            yield self._delta({"type": "signature_delta", "signature": SIGNATURE})
        yield {"type": "content_block_stop", "index": self._next_index}
        self._open = None
        self._next_index += 1

    def _delta(self, delta: Mapping[str, Any]) -> Event:
        return {"type": "content_block_delta", "index": self._next_index, "delta": delta}

    def _stop_reason(self) -> str:
        if self._scanner.found is not None:
            return "stop_sequence"
        match self._finish_reason:
            case "length" if 0 < self.usage.completion < self._max_tokens:
                return "model_context_window_exceeded"
            case "length":
                return "max_tokens"
            case "content_filter":
                return "refusal"
            case _:
                return "tool_use" if self._calls else "end_turn"


def _call_id(engines: str | None) -> str:
    return f"toolu_{_NOT_OF_AN_ID.sub('', engines or '') or uuid.uuid4().hex}"
