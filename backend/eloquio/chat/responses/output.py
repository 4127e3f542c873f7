"""The items of a response's output as they grow, and the events that tell of it.

The events here have neither number nor bytes yet: `stream.py` gives them both.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from eloquio.chat.named_events import Event

ItemStatus = Literal["in_progress", "completed", "incomplete"]


class OutputItem(Protocol):
    status: ItemStatus

    def body(self) -> dict[str, Any]:
        """The item as far as it has come."""

    def opening(self) -> Iterator[Event]: ...

    def closing(self, status: ItemStatus) -> Iterator[Event]: ...


class _Item:
    def __init__(self, prefix: str, output_index: int) -> None:
        self.id = f"{prefix}_{uuid.uuid4().hex}"
        self.status: ItemStatus = "in_progress"
        self._pieces: list[str] = []
        self._output_index = output_index

    def _event(self, kind: str, **fields: object) -> Event:
        return {
            "type": f"response.{kind}",
            "item_id": self.id,
            "output_index": self._output_index,
            **fields,
        }

    def _item_event(self, kind: str, item: Mapping[str, Any]) -> Event:
        return {
            "type": f"response.output_item.{kind}",
            "output_index": self._output_index,
            "item": item,
        }


class Text(_Item):
    """A message of one text."""

    def __init__(self, output_index: int) -> None:
        super().__init__("msg", output_index)
        self._logprobs: list[Mapping[str, Any]] = []

    def body(self) -> dict[str, Any]:
        return self._body([self._part()])

    def opening(self) -> Iterator[Event]:
        yield self._item_event("added", self._body([]))
        yield self._event("content_part.added", content_index=0, part=self._part())

    def add(self, piece: str, logprobs: Sequence[Mapping[str, Any]]) -> Event:
        self._pieces.append(piece)
        self._logprobs += logprobs
        return self._event(
            "output_text.delta", content_index=0, delta=piece, logprobs=list(logprobs)
        )

    def closing(self, status: ItemStatus) -> Iterator[Event]:
        self.status = status
        part = self._part()
        yield self._event(
            "output_text.done", content_index=0, text=part["text"], logprobs=part["logprobs"]
        )
        yield self._event("content_part.done", content_index=0, part=part)
        yield self._item_event("done", self._body([part]))

    def _body(self, content: list[Mapping[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "status": self.status,
            "content": content,
        }

    def _part(self) -> dict[str, Any]:
        return {
            "type": "output_text",
            "text": "".join(self._pieces),
            "annotations": [],
            "logprobs": list(self._logprobs),
        }


class Thought(_Item):
    """Reasoning, told in full and never summarised."""

    def __init__(self, output_index: int) -> None:
        super().__init__("rs", output_index)

    def body(self) -> dict[str, Any]:
        return self._body([self._part()])

    def opening(self) -> Iterator[Event]:
        yield self._item_event("added", self._body([]))
        yield self._event("content_part.added", content_index=0, part=self._part())

    def add(self, piece: str) -> Event:
        self._pieces.append(piece)
        return self._event("reasoning_text.delta", content_index=0, delta=piece)

    def closing(self, status: ItemStatus) -> Iterator[Event]:
        self.status = status
        part = self._part()
        yield self._event("reasoning_text.done", content_index=0, text=part["text"])
        yield self._event("content_part.done", content_index=0, part=part)
        yield self._item_event("done", self._body([part]))

    def _body(self, content: list[Mapping[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "reasoning",
            "status": self.status,
            "summary": [],
            "content": content,
            "encrypted_content": None,
        }

    def _part(self) -> dict[str, Any]:
        return {"type": "reasoning_text", "text": "".join(self._pieces)}


@dataclass(frozen=True)
class CallHead:
    """What an engine says of a call once, before its arguments."""

    position: int
    """Among the calls of the answer."""
    call_id: str
    name: str


class Call(_Item):
    """A call of one of the client's functions."""

    def __init__(self, output_index: int, head: CallHead) -> None:
        super().__init__("fc", output_index)
        self.head = head

    def body(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "function_call",
            "status": self.status,
            "call_id": self.head.call_id,
            "name": self.head.name,
            "arguments": "".join(self._pieces),
        }

    def opening(self) -> Iterator[Event]:
        yield self._item_event("added", self.body())

    def add(self, piece: str) -> Event:
        self._pieces.append(piece)
        return self._event("function_call_arguments.delta", delta=piece)

    def closing(self, status: ItemStatus) -> Iterator[Event]:
        self.status = status
        item = self.body()
        yield self._event(
            "function_call_arguments.done", name=self.head.name, arguments=item["arguments"]
        )
        yield self._item_event("done", item)
