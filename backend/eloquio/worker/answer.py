"""One choice of an answer: its tokens as they come, made the deltas that a client reads."""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from eloquio.worker.answer_text import AnswerText
from eloquio.worker.generator import Generator, Order
from eloquio.worker.pieces import Call, Content, Piece
from eloquio.worker.sampling import Step
from eloquio.worker.stops import StopScanner
from eloquio.worker.text_stream import TextStream

Decode = Callable[[list[int]], str]


@dataclass(frozen=True)
class Reading:
    """How the tokens of an answer become its text, and the text its parts."""

    decode: Decode
    skip_ids: frozenset[int]
    before: Sequence[int]
    """The prompt's ids, where the answer goes on with its text."""
    stops: tuple[str, ...]
    text: AnswerText | None
    """None where all that comes is content: a completion without a chat."""


@dataclass
class Outcome:
    """How a choice ended; times are of the monotonic clock, in seconds."""

    finish_reason: str = "stop"
    tokens: int = 0
    began: float = 0.0
    first: float = 0.0
    ended: float = 0.0


@dataclass(frozen=True)
class Told:
    """What one step or several have made sure of, with their log probabilities."""

    pieces: Sequence[Piece]
    steps: Sequence[Step]


async def answer(
    generator: Generator, order: Order, reading: Reading, outcome: Outcome
) -> AsyncGenerator[Told]:
    """Ends at an end token, a stop sequence, or the limit; `outcome` then says which."""
    stream = TextStream(reading.decode, reading.skip_ids, reading.before)
    scanner = StopScanner(reading.stops)
    parts = _Parts(reading.text)
    steps: list[Step] = []
    has_ended = False
    outcome.began = time.monotonic()
    async with aclosing(generator.generate(order)) as tokens:
        async for step in tokens:
            outcome.tokens += 1
            outcome.first = outcome.first or time.monotonic()
            if step.token in order.end_ids:
                has_ended = True
                break
            if order.sampling.top_logprobs is not None:
                steps.append(step)
            pieces = parts.feed(scanner.feed(stream.feed(step.token)))
            if pieces:
                yield Told(pieces, steps)
                steps = []
            if scanner.found is not None:
                has_ended = True
                break
    outcome.ended = time.monotonic()
    rest = scanner.feed(stream.end()) + scanner.end() if scanner.found is None else ""
    if pieces := [*parts.feed(rest), *parts.end()]:
        yield Told(pieces, steps)
    outcome.finish_reason = _reason(has_ended or scanner.found is not None, parts.has_calls)


def _reason(has_ended: bool, has_calls: bool) -> str:
    if not has_ended:
        return "length"
    return "tool_calls" if has_calls else "stop"


class _Parts:
    def __init__(self, text: AnswerText | None) -> None:
        self.has_calls = False
        self._text = text

    def feed(self, text: str) -> list[Piece]:
        if self._text is None:
            return [Content(text)] if text else []
        return self._noted(self._text.feed(text))

    def end(self) -> list[Piece]:
        return [] if self._text is None else self._noted(self._text.end())

    def _noted(self, pieces: list[Piece]) -> list[Piece]:
        self.has_calls |= any(isinstance(piece, Call) for piece in pieces)
        return pieces


def told_logprobs(steps: Sequence[Step], decode: Decode) -> dict[str, Any] | None:
    """As OpenAI tells them: natural logarithms, with each token's text and bytes."""
    if not steps:
        return None
    return {
        "content": [
            _told_token(step.token, step.logprob, decode)
            | {"top_logprobs": [_told_token(*each, decode) for each in step.alternatives]}
            for step in steps
        ]
    }


def _told_token(token: int, logprob: float | None, decode: Decode) -> dict[str, Any]:
    text = decode([token])
    return {"token": text, "bytes": list(text.encode()), "logprob": logprob}
