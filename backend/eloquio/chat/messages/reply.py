"""A message's events, folded into the message they tell: streamed and whole can't differ."""

from collections.abc import Iterable
from typing import Any

from pydantic_core import from_json

from eloquio.chat.named_events import Event
from eloquio.errors import EngineFault


def message_of(events: Iterable[Event]) -> dict[str, Any]:
    """The message that isn't streamed. EngineFault where a tool's input is no JSON object."""
    message: dict[str, Any] = {}
    pieces: list[str] = []
    for event in events:
        match event:
            case {"type": "message_start", "message": dict(begun)}:
                message = {**begun, "content": []}
            case {"type": "content_block_start", "content_block": dict(block)}:
                message["content"].append({**block})
                pieces = []
            case {"type": "content_block_delta", "delta": dict(delta)}:
                _add(message["content"][-1], delta, pieces)
            case {"type": "content_block_stop"}:
                _finish(message["content"][-1], "".join(pieces))
            case {"type": "message_delta", "delta": dict(delta), "usage": usage}:
                message |= delta
                message["usage"] = usage
                if "trace" in event:
                    message["trace"] = event["trace"]
    return message


def _add(block: dict[str, Any], delta: dict[str, Any], pieces: list[str]) -> None:
    match delta:
        case {"type": "signature_delta", "signature": signature}:
            block["signature"] = signature
        case {"text": str(piece)} | {"thinking": str(piece)} | {"partial_json": str(piece)}:
            # Joined once the block has ended: a long text isn't copied for each of its tokens.
            pieces.append(piece)


def _finish(block: dict[str, Any], content: str) -> None:
    if block["type"] == "tool_use":
        block["input"] = _input(content) if content else {}
    else:
        block[block["type"]] = content


def _input(arguments: str) -> dict[str, Any]:
    """As far as it came, where the answer was cut off in the middle of it."""
    try:
        parsed = from_json(arguments, allow_partial=True)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise EngineFault("The model called a tool with what is no JSON object.")
    return parsed
