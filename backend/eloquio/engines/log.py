"""The last lines an engine wrote."""

from collections import deque
from collections.abc import Iterator

MAX_LINE_CHARACTERS = 4000


class LogRing:
    """Splits an engine's output into lines and keeps the last of them."""

    def __init__(self, capacity: int = 500) -> None:
        self._lines: deque[str] = deque(maxlen=capacity)
        self._partial = b""
        self.line_count = 0

    def feed(self, output: bytes) -> list[str]:
        """Takes output as it comes; answers the lines it completed."""
        *whole, self._partial = (self._partial + output).split(b"\n")
        if len(self._partial) > MAX_LINE_CHARACTERS:
            whole.append(self._partial)
            self._partial = b""
        lines = [_readable(line) for line in whole]
        self._lines.extend(lines)
        self.line_count += len(lines)
        return lines

    def close(self) -> None:
        if self._partial:
            self.feed(b"\n")

    def tail(self, count: int) -> list[str]:
        return list(self._lines)[-count:]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)


def _readable(line: bytes) -> str:
    return line.decode(errors="replace").rstrip()[:MAX_LINE_CHARACTERS]
