"""The chunks of a streamed answer, in the shape and order that llama-server has."""

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from eloquio.worker.pieces import Call, Content, Piece, Reasoning

ACCEPTED = b'data: {"choices":[],"prompt_progress":{"processed":0}}\n\n'
"""The first event: the request is right and waits for its first token. The backend drops it."""


class Chunks:
    """Of one answer with one choice or several."""

    def __init__(self, kind: str, object_: str, model: str) -> None:
        """`kind` begins the id: chatcmpl or cmpl."""
        self._head = {
            "id": f"{kind}-{uuid.uuid4().hex}",
            "object": object_,
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": "transformers",
        }

    def choice(self, beside: Mapping[str, Any] | None = None, **choice: Any) -> bytes:
        return event({**self._head, "choices": [choice], **(beside or {})})

    def end(self, totals: Mapping[str, Any]) -> bytes:
        """A chat's last chunk."""
        return event({**self._head, "choices": [], **totals})


def timings(prompt_tokens: int, tokens: int, prompt_ms: float, decode_ms: float) -> dict[str, Any]:
    return {
        "cache_n": 0,
        "prompt_n": prompt_tokens,
        "prompt_ms": round(prompt_ms, 3),
        "predicted_n": tokens,
        "predicted_ms": round(decode_ms, 3),
        "predicted_per_second": round(1000 * tokens / decode_ms, 2) if decode_ms else 0.0,
    }


def usage(prompt_tokens: int, tokens: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": tokens,
        "total_tokens": prompt_tokens + tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def event(body: Any) -> bytes:
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def deltas(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """Neighbours of one kind become one."""
    found: list[dict[str, Any]] = []
    for piece in pieces:
        match piece:
            case Content(text):
                _join(found, "content", text)
            case Reasoning(text):
                _join(found, "reasoning_content", text)
            case Call():
                function = {"name": piece.name, "arguments": piece.arguments}
                call = {"index": piece.index, "id": piece.id, "type": "function"}
                found.append({"tool_calls": [call | {"function": function}]})
    return found


def _join(found: list[dict[str, Any]], field: str, text: str) -> None:
    if found and field in found[-1]:
        found[-1][field] += text
    else:
        found.append({field: text})
