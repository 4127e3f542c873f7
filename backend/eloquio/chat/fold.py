"""The chunks of a streamed answer, folded into the message they make, or into a whole reply."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eloquio.engines.event_blocks import data_of


@dataclass
class Message:
    """An assistant's message as far as it has come, and how it ended if it did."""

    content: str = ""
    reasoning_content: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None


class FoldedChoice:
    """One choice. Its pieces are gathered, and joined when they are asked for."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._logprobs: list[Any] = []

    @property
    def content(self) -> str:
        return "".join(self._content)

    @property
    def reasoning_content(self) -> str:
        return "".join(self._reasoning)

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        return [self._calls[index] for index in sorted(self._calls)]

    def add(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta") or {}
        if says_something(delta):
            # A reply that was continued has an end in its middle.
            self.finish_reason = None
        self._content.append(delta.get("content") or "")
        self._reasoning.append(delta.get("reasoning_content") or "")
        for piece in delta.get("tool_calls") or ():
            self._add_to_call(piece)
        self._logprobs += (choice.get("logprobs") or {}).get("content") or ()
        self.finish_reason = choice.get("finish_reason") or self.finish_reason

    def as_choice(self, index: int) -> dict[str, Any]:
        """As it stands in a reply that isn't streamed."""
        calls, content = self.tool_calls, self.content
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content if content or not calls else None,
        }
        if self._reasoning and (reasoning := self.reasoning_content):
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = calls
        return {
            "index": index,
            "message": message,
            "logprobs": {"content": self._logprobs} if self._logprobs else None,
            "finish_reason": self.finish_reason,
        }

    def _add_to_call(self, piece: Mapping[str, Any]) -> None:
        """A call's id, type and name come once; its arguments come in pieces."""
        call = self._calls.setdefault(
            piece.get("index", len(self._calls)),
            {"id": None, "type": "function", "function": {"name": "", "arguments": ""}},
        )
        call["id"] = piece.get("id") or call["id"]
        call["type"] = piece.get("type") or call["type"]
        function = piece.get("function") or {}
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""


class Folding:
    """Takes the chunks as they come; what isn't a chunk changes nothing."""

    def __init__(self) -> None:
        self._choices: dict[int, FoldedChoice] = {}
        self._last: dict[str, Any] = {}
        self.usage: dict[str, Any] | None = None
        self.size_bytes = 0
        """Of the chunks so far: what they make is smaller."""

    def add(self, block: bytes) -> None:
        for event in data_of(block):
            self.add_event(event)

    def add_event(self, event: bytes) -> None:
        self.size_bytes += len(event)
        chunk = _object(event)
        for choice in _choices(chunk):
            folded = self._choices.setdefault(choice.get("index", 0), FoldedChoice())
            if says_something(choice.get("delta") or {}):
                self.usage = None
            folded.add(choice)
        if isinstance(usage := chunk.get("usage"), dict):
            self.usage = usage
        self._last |= chunk

    def completion(self) -> dict[str, Any]:
        """The reply that the engine would have given without a stream."""
        reply = {
            "id": self._last.get("id"),
            "object": "chat.completion",
            "created": self._last.get("created"),
            "model": self._last.get("model"),
            "system_fingerprint": self._last.get("system_fingerprint"),
            "choices": [self._choices[i].as_choice(i) for i in sorted(self._choices)],
            "usage": self.usage,
        }
        kept = ("timings", "trace")
        return reply | {name: self._last[name] for name in kept if name in self._last}

    def message(self) -> Message:
        """The only choice's."""
        choice = self._choices.get(0, FoldedChoice())
        return Message(
            content=choice.content,
            reasoning_content=choice.reasoning_content,
            tool_calls=choice.tool_calls,
            finish_reason=choice.finish_reason,
            usage=self.usage,
        )


def fold(events: Iterable[bytes]) -> Message:
    """`events` are chunks of one choice, as JSON."""
    folding = Folding()
    for event in events:
        folding.add_event(event)
    return folding.message()


def only_names_the_role(event: bytes) -> bool:
    """Whether it is the chunk by which a message begins."""
    [choice, *_] = _choices(_object(event)) or [{}]
    delta = choice.get("delta") or {}
    return not choice.get("finish_reason") and "role" in delta and not says_something(delta)


def says_something(delta: Mapping[str, Any]) -> bool:
    return any(delta.get(part) for part in ("content", "reasoning_content", "tool_calls"))


def _object(event: bytes) -> dict[str, Any]:
    try:
        chunk = json.loads(event)
    except ValueError:
        return {}
    return chunk if isinstance(chunk, dict) else {}


def _choices(chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [choice for choice in chunk.get("choices") or () if isinstance(choice, dict)]
