"""An engine's bytes, split into the events they hold."""

DONE = b"[DONE]"
_EVENT_END = b"\n\n"
_DATA = b"data:"


class EventSplitter:
    """Takes a stream as it comes, cut anywhere, and gives each event's data once it is whole."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that `chunk` completes; comments have none."""
        # A blank line may begin in what came before.
        searched = max(0, len(self._rest) - len(_EVENT_END) + 1)
        self._rest += chunk
        found: list[bytes] = []
        begin = 0
        while (end := self._rest.find(_EVENT_END, searched)) >= 0:
            if data := _data_of(bytes(self._rest[begin:end])):
                found.append(data)
            begin = searched = end + len(_EVENT_END)
        del self._rest[:begin]
        return found


def _data_of(event: bytes) -> bytes:
    lines = [
        line.removeprefix(_DATA).strip() for line in event.split(b"\n") if line.startswith(_DATA)
    ]
    # To JSON a line's end between two tokens is a space.
    return b" ".join(lines)
