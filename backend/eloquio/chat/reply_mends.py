"""What an engine's chunks tell otherwise than their request asked for, mended as they pass.

Seen with llama-server's build 10434: it makes several calls even where `parallel_tool_calls` is
false, and can't tell a token's probability without an alternative to it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eloquio import sse
from eloquio.chat.forced_calls import CallsInText, not_called
from eloquio.chat.schema import ChatRequest
from eloquio.engines.event_blocks import data_of

Chunk = dict[str, Any]


@dataclass(frozen=True)
class ReplyWishes:
    """What a request says of its reply, and the engine doesn't keep to."""

    takes_one_call: bool = False
    """Calls of tools after the first are left out."""
    requires_call: bool = False
    """The text is a list of calls; see `forced_calls.py`."""
    takes_no_alternatives: bool = False
    """Of each token its own probability is told, and no other's."""

    @classmethod
    def of(cls, request: ChatRequest) -> "ReplyWishes":
        return cls(
            takes_one_call=request.parallel_tool_calls is False or request.chosen_tool is not None,
            requires_call=request.requires_call,
            takes_no_alternatives=bool(request.logprobs and not request.top_logprobs),
        )

    @classmethod
    def of_kept(cls, fields: Mapping[str, Any]) -> "ReplyWishes":
        """The same for a request that `mends.mended` has changed."""
        return cls(
            takes_one_call=fields.get("parallel_tool_calls") is False,
            requires_call=fields.get("tool_choice") == "required",
            takes_no_alternatives="n_probs" in fields,
        )


class ReplyMends:
    """Takes the blocks of one reply in their order."""

    def __init__(self, wishes: ReplyWishes) -> None:
        self._wishes = wishes
        self._texts: dict[int, CallsInText] = {}

    def take(self, block: bytes) -> bytes:
        """The block with what was asked for; the same object where nothing had to be mended.

        ToolNotCalled where the answer ends without a call that is required.
        """
        if not self._is_concerned(block):
            return block
        chunks = (self._mended(json.loads(data)) for data in data_of(block))
        return b"".join(sse.event(chunk) for chunk in chunks if chunk is not None)

    def _is_concerned(self, block: bytes) -> bool:
        # In a text a quote is escaped: none of these can come from what a model writes.
        wishes = self._wishes
        return (
            (wishes.takes_one_call and b'"tool_calls":' in block)
            or (wishes.requires_call and b'"delta":' in block)
            or (wishes.takes_no_alternatives and b'"top_logprobs":' in block)
        )

    def _mended(self, chunk: Chunk) -> Chunk | None:
        if self._wishes.takes_no_alternatives:
            _drop_alternatives(chunk)
        told: Chunk | None = chunk
        if self._wishes.requires_call:
            told = self._with_calls(chunk)
        return with_one_call(told) if told and self._wishes.takes_one_call else told

    def _with_calls(self, chunk: Chunk) -> Chunk | None:
        """A chunk whose text is told as calls; None where nothing of it can be told yet."""
        given = chunk.get("choices") or []
        choices = [told for choice in given if (told := self._called(choice)) is not None]
        return chunk | {"choices": choices} if choices or not given else None

    def _called(self, choice: Chunk) -> Chunk | None:
        text = self._texts.setdefault(choice.get("index", 0), CallsInText())
        delta: Chunk = dict(choice.get("delta") or {})
        if delta.get("tool_calls"):
            # Some templates' own ways of calling are kept to even so.
            text.has_called = True
        if (piece := delta.pop("content", None)) and (calls := text.feed(piece)):
            delta["tool_calls"] = calls
        if "role" in delta:
            delta["content"] = None
        reason = choice.get("finish_reason")
        if reason == "stop":
            if not text.has_called:
                raise not_called()
            reason = "tool_calls"
        return choice | {"delta": delta, "finish_reason": reason} if delta or reason else None


def with_one_call(chunk: Chunk) -> Chunk | None:
    """A chunk without the calls after the first; None where nothing else is in it."""
    has_dropped = False
    choices: list[Chunk] = []
    for choice in chunk.get("choices") or ():
        delta: Chunk = choice.get("delta") or {}
        pieces = delta.get("tool_calls") or []
        kept = [piece for piece in pieces if not piece.get("index")]
        if len(kept) < len(pieces):
            has_dropped = True
            rest = {name: value for name, value in delta.items() if name != "tool_calls"}
            delta = rest | ({"tool_calls": kept} if kept else {})
            if not delta and not choice.get("finish_reason"):
                continue
            choice = choice | {"delta": delta}
        choices.append(choice)
    if not has_dropped:
        return chunk
    return chunk | {"choices": choices} if choices else None


def _drop_alternatives(chunk: Chunk) -> None:
    for choice in chunk.get("choices") or ():
        for token in (choice.get("logprobs") or {}).get("content") or ():
            token["top_logprobs"] = []
