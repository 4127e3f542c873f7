"""A chat completion's chunks, made a response and the events that tell how it grows."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from eloquio.chat.named_events import Event
from eloquio.chat.responses.output import (
    Call,
    CallHead,
    ItemStatus,
    OutputItem,
    Text,
    Thought,
)
from eloquio.chat.responses.reply import UNDER_WAY, Ending, ResponseFrame
from eloquio.chat.responses.schema import ResponseRequest
from eloquio.chat.usage import Usage
from eloquio.errors import EloquioError, EngineFault


class ResponseEvents:
    """Takes the chunks in order; `response` is at any moment what they have made.

    The response that isn't streamed comes out of the same, so that the two can't differ.
    """

    def __init__(self, request: ResponseRequest) -> None:
        self._frame = ResponseFrame(request)
        self._top_logprobs = request.top_logprobs or 0
        self._items: list[OutputItem] = []
        self._open: Text | Thought | Call | None = None
        self._finish_reason: str | None = None
        self._usage: Usage | None = None
        self._trace: object = None
        self._ending = UNDER_WAY
        self._next_number = 0

    @property
    def told_events(self) -> int:
        return self._next_number

    @property
    def response(self) -> dict[str, Any]:
        output = [item.body() for item in self._items]
        response = self._frame.response(self._ending, output, self._usage)
        return response if self._trace is None else response | {"trace": self._trace}

    def feed(self, chunk: Mapping[str, Any]) -> list[Event]:
        """The events of one chunk. EngineFault where it goes back to a call that had ended."""
        return self._numbered(self._told_by(chunk))

    def end(self) -> list[Event]:
        """The last events, once the engine's answer is whole. EngineFault without its reason."""
        ending = Ending.of(self._finish_reason)
        return self._numbered(self._ended(ending))

    def fail(self, error: EloquioError) -> list[Event]:
        """The last events where it came to no end of its own."""
        return self._numbered(self._failed(error))

    def _told_by(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        self._frame.names(chunk.get("model"))
        yield from self._begun()
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = Usage.of(usage)
        self._trace = chunk.get("trace") or self._trace
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            if piece := delta.get("reasoning_content"):
                yield from self._thought(piece)
            if piece := delta.get("content"):
                yield from self._text(piece, _logprobs(choice, self._top_logprobs))
            for call in delta.get("tool_calls") or ():
                yield from self._call(call)
            self._finish_reason = choice.get("finish_reason") or self._finish_reason

    def _begun(self) -> Iterator[Event]:
        if self._next_number == 0:
            for kind in ("created", "in_progress"):
                yield {"type": f"response.{kind}", "response": self.response}

    def _thought(self, piece: str) -> Iterator[Event]:
        if not isinstance(self._open, Thought):
            yield from self._closed("completed")
            yield from self._opened(thought := Thought(len(self._items)))
        else:
            thought = self._open
        yield thought.add(piece)

    def _text(self, piece: str, logprobs: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
        if not isinstance(self._open, Text):
            yield from self._closed("completed")
            yield from self._opened(text := Text(len(self._items)))
        else:
            text = self._open
        yield text.add(piece, logprobs)

    def _call(self, piece: Mapping[str, Any]) -> Iterator[Event]:
        function = piece.get("function") or {}
        position = piece.get("index") or 0
        if not isinstance(self._open, Call) or self._open.head.position != position:
            calls = [item for item in self._items if isinstance(item, Call)]
            if any(call.head.position == position for call in calls):
                raise EngineFault("The engine went back to a call of a tool that had ended.")
            yield from self._closed("completed")
            call_id = piece.get("id") or f"call_{uuid.uuid4().hex}"
            head = CallHead(position, call_id, function.get("name") or "")
            yield from self._opened(call := Call(len(self._items), head))
        else:
            call = self._open
        if arguments := function.get("arguments"):
            yield call.add(arguments)

    def _opened(self, item: Text | Thought | Call) -> Iterator[Event]:
        self._items.append(item)
        self._open = item
        yield from item.opening()

    def _closed(self, status: ItemStatus) -> Iterator[Event]:
        if self._open is not None:
            yield from self._open.closing(status)
            self._open = None

    def _ended(self, ending: Ending) -> Iterator[Event]:
        yield from self._begun()
        if not self._items and ending.status == "completed":
            # A model may say nothing; a client still looks for its message.
            yield from self._opened(Text(0))
        yield from self._closed("completed" if ending.status == "completed" else "incomplete")
        self._ending = ending
        yield {"type": f"response.{ending.status}", "response": self.response}

    def _failed(self, error: EloquioError) -> Iterator[Event]:
        yield from self._begun()
        if self._open is not None:
            self._open.status = "incomplete"
        self._ending = Ending("failed", error=error)
        told = error.body()["error"]
        # By its object `error` the official clients know that they have to raise.
        yield {**told, "type": "error", "error": told}
        yield {"type": "response.failed", "response": self.response}

    def _numbered(self, events: Iterable[Event]) -> list[Event]:
        numbered = []
        for event in events:
            numbered.append({**event, "sequence_number": self._next_number})
            self._next_number += 1
        return numbered


def _logprobs(choice: Mapping[str, Any], top: int) -> list[dict[str, Any]]:
    told = (choice.get("logprobs") or {}).get("content") or ()
    return [
        _logprob(token)
        | {"top_logprobs": [_logprob(other) for other in token["top_logprobs"][:top]]}
        for token in told
    ]


def _logprob(token: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "token": token["token"],
        "bytes": token.get("bytes") or list(token["token"].encode()),
        "logprob": token["logprob"],
    }
