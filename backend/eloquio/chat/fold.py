"""The chunks of a streamed answer, folded into the message they make."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Message:
    """An assistant's message as far as it has come, and how it ended if it did."""

    content: str = ""
    reasoning_content: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None


def fold(events: Iterable[bytes]) -> Message:
    """`events` are chunks of one choice, as JSON. What isn't a chunk changes nothing."""
    content: list[str] = []
    reasoning: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    message = Message()
    for event in events:
        chunk = _object(event)
        if isinstance(usage := chunk.get("usage"), dict):
            message.usage = usage
        choice = _first_choice(chunk)
        if choice is None:
            continue
        delta = choice.get("delta") or {}
        if _says_something(delta):
            # A reply that was continued has an end in its middle.
            message.finish_reason = message.usage = None
        content.append(delta.get("content") or "")
        reasoning.append(delta.get("reasoning_content") or "")
        for piece in delta.get("tool_calls") or ():
            _add_to_call(calls, piece)
        message.finish_reason = choice.get("finish_reason") or message.finish_reason
    message.content = "".join(content)
    message.reasoning_content = "".join(reasoning)
    message.tool_calls = [calls[index] for index in sorted(calls)]
    return message


def only_names_the_role(event: bytes) -> bool:
    """Whether it is the chunk by which a message begins."""
    choice = _first_choice(_object(event))
    if choice is None or choice.get("finish_reason"):
        return False
    delta = choice.get("delta") or {}
    return "role" in delta and not _says_something(delta)


def _says_something(delta: Mapping[str, Any]) -> bool:
    return any(delta.get(part) for part in ("content", "reasoning_content", "tool_calls"))


def _object(event: bytes) -> dict[str, Any]:
    try:
        chunk = json.loads(event)
    except ValueError:
        return {}
    return chunk if isinstance(chunk, dict) else {}


def _first_choice(chunk: Mapping[str, Any]) -> dict[str, Any] | None:
    choices = chunk.get("choices") or [None]
    return choices[0] if isinstance(choices[0], dict) else None


def _add_to_call(calls: dict[int, dict[str, Any]], piece: Mapping[str, Any]) -> None:
    """A call's id, type and name come once; its arguments come in pieces."""
    call = calls.setdefault(
        piece.get("index", len(calls)),
        {"id": None, "type": "function", "function": {"name": "", "arguments": ""}},
    )
    call["id"] = piece.get("id") or call["id"]
    call["type"] = piece.get("type") or call["type"]
    function = piece.get("function") or {}
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""
