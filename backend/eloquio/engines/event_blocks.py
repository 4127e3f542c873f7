"""An engine's stream as it comes, cut into blocks of whole events, and mended by bytes.

What is mended is llama-server's (builds 10434 and 11434): it tells the progress of the prompt by
chunks that are no part of the answer, and changes `created` within one stream.
"""

import re
from collections.abc import Iterator

from eloquio import sse

_END = b"\n\n"
# In a text a quote is escaped: none of these can come from what a model writes.
_PROGRESS = b'"prompt_progress":{'
_ERROR = b'data: {"error"'
_CREATED = re.compile(rb'"created":\d+')


class EventBlocks:
    """Takes a stream's bytes, cut anywhere. A block is one event or more, each with its blank line.

    A block is mostly one read of the engine's connection, and mostly passes as it is.
    """

    def __init__(self) -> None:
        self.is_whole = False
        """The engine said that its answer has ended well."""
        self.error: bytes | None = None
        """The JSON of the error by which the stream ended, if it did."""
        self._rest = b""
        self._created = b""

    def feed(self, chunk: bytes) -> bytes:
        """The events that `chunk` completes, without progress, the end and an error; or nothing."""
        block = self._whole_events(chunk)
        if _ERROR in block:
            block, _, error = block.partition(_ERROR)
            event, _, _ = error.partition(_END)
            self.error = _ERROR.removeprefix(b"data: ") + event
        if block.endswith(sse.DONE):
            block, self.is_whole = block[: -len(sse.DONE)], True
        if _PROGRESS in block:
            block = b"".join(event for event in events_of(block) if _PROGRESS not in event)
        return self._with_one_creation(block) if block else block

    def _whole_events(self, chunk: bytes) -> bytes:
        if self._rest:
            chunk, self._rest = self._rest + chunk, b""
        if chunk.endswith(_END):
            return chunk
        end = chunk.rfind(_END) + len(_END)
        if end < len(_END):
            self._rest = chunk
            return b""
        self._rest = chunk[end:]
        return chunk[:end]

    def _with_one_creation(self, block: bytes) -> bytes:
        if not self._created and (first := _CREATED.search(block)):
            self._created = first.group()
        if block.count(b'"created":') == block.count(self._created):
            return block
        return _CREATED.sub(self._created, block)


def events_of(block: bytes) -> Iterator[bytes]:
    """A block's events, each with its blank line."""
    begin = 0
    while (end := block.find(_END, begin)) >= 0:
        yield block[begin : end + len(_END)]
        begin = end + len(_END)


def data_of(block: bytes) -> Iterator[bytes]:
    """The data of a block's events; comments have none."""
    for event in events_of(block):
        lines = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
        if lines:
            # To JSON a line's end between two tokens is a space.
            yield b" ".join(lines)
