"""The last lines an engine wrote."""

from collections import deque
from collections.abc import Sequence
from pathlib import Path

MAX_LINE_CHARACTERS = 2000


class LogRing:
    """Splits an engine's output into lines and keeps the last of them.

    `hidden` folders are cut out of each line: what an engine says may leave in a reply, and where
    the person keeps their files may not.
    """

    def __init__(self, capacity: int = 500, hidden: Sequence[Path] = ()) -> None:
        self._lines: deque[str] = deque(maxlen=capacity)
        self._partial = b""
        # The longest first, so that no folder is left behind by the cutting of its parent.
        self._hidden = sorted((f"{folder}/" for folder in hidden), key=len, reverse=True)
        self.line_count = 0

    @property
    def lines(self) -> list[str]:
        return list(self._lines)

    def feed(self, output: bytes) -> None:
        """Takes output as it comes."""
        *whole, self._partial = (self._partial + output).split(b"\n")
        if len(self._partial) > MAX_LINE_CHARACTERS:
            whole.append(self._partial)
            self._partial = b""
        self._lines.extend(self._readable(line) for line in whole)
        self.line_count += len(whole)

    def close(self) -> None:
        if self._partial:
            self.feed(b"\n")

    def _readable(self, line: bytes) -> str:
        text = line.decode(errors="replace").rstrip()[:MAX_LINE_CHARACTERS]
        for folder in self._hidden:
            text = text.replace(folder, "")
        return text
