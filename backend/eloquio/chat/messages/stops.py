"""Stop sequences, found in a text that comes in pieces."""

from collections.abc import Sequence


class StopScanner:
    """Gives on what can't be the beginning of a stop sequence, however the text is cut.

    Of several that are met, the one that is whole first counts; of two that end together, the
    longer.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.found: str | None = None
        self._stops = tuple(stops)
        self._held = ""

    def feed(self, text: str) -> str:
        """What may be told of the text so far. Nothing more, once a stop sequence was found."""
        if self.found is not None:
            return ""
        text, self._held = self._held + text, ""
        if met := [
            (at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0
        ]:
            _, begin, self.found = min(met)
            return text[:begin]
        told = len(text) - max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[told:]
        return text[:told]

    def end(self) -> str:
        """What was held back, when the text has ended and it turned out to be no stop sequence."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """How many characters at the text's end may be the beginning of `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
