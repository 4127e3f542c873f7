"""An answer's text, read as what it is: reasoning, content and calls of tools."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eloquio.worker import harmony
from eloquio.worker.harmony import HarmonyParser
from eloquio.worker.pieces import Content, Piece
from eloquio.worker.reasoning import Harmony, ReasoningForm, ReasoningParser, Tags
from eloquio.worker.tool_calls import CallForm, ToolCallParser, schemas_of


class AnswerText:
    """Takes the text of one answer in pieces, as a TextStream and a StopScanner give it on."""

    def __init__(
        self, reasoning: ReasoningForm, calls: CallForm, tools: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """Without `tools` nothing is a call."""
        self._harmony: HarmonyParser | None = None
        self._reasoning: ReasoningParser | None = None
        self._calls: ToolCallParser | None = None
        match reasoning:
            case Harmony():
                self._harmony = HarmonyParser(reasoning, schemas_of(tools).keys())
                return
            case Tags():
                self._reasoning = ReasoningParser(reasoning)
            case None:
                pass
        if tools:
            self._calls = ToolCallParser(calls, tools)

    def feed(self, text: str) -> list[Piece]:
        """What is sure now, in its order."""
        if not text:
            return []
        if self._harmony is not None:
            return self._harmony.feed(text)
        if self._reasoning is None:
            return self._with_calls([Content(text)])
        return self._with_calls(self._reasoning.feed(text))

    def end(self) -> list[Piece]:
        """What was held back until the text had ended."""
        if self._harmony is not None:
            return self._harmony.end()
        pieces = self._with_calls(self._reasoning.end() if self._reasoning else [])
        return pieces + (self._calls.end() if self._calls else [])

    def _with_calls(self, pieces: list[Piece]) -> list[Piece]:
        if self._calls is None:
            return pieces
        read: list[Piece] = []
        for piece in pieces:
            read += self._calls.feed(piece.text) if isinstance(piece, Content) else [piece]
        return read


def skipped_ids(
    special: Mapping[int, str], reasoning: ReasoningForm, calls: CallForm | None
) -> frozenset[int]:
    """Of a tokenizer's special tokens, those that no part of the answer's text is told by.

    `calls` is None where the request has no tools.
    """
    marks = _marks(reasoning) | (calls.marks if calls else frozenset())
    return frozenset(id_ for id_, text in special.items() if not _is_mark(text, marks))


def _marks(reasoning: ReasoningForm) -> frozenset[str]:
    match reasoning:
        case Harmony():
            return frozenset(harmony.MARKS)
        case Tags():
            return frozenset({reasoning.open, reasoning.close, *reasoning.dropped})
        case None:
            return frozenset()


def _is_mark(token: str, marks: Iterable[str]) -> bool:
    return bool(token.strip()) and any(token.strip() in mark for mark in marks)
