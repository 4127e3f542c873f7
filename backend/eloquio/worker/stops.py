"""Stop sequences, found in a text that comes in pieces."""

from collections.abc import Iterable

from eloquio.worker.search import Search


class StopScanner:
    """Gives on what can't be the beginning of a stop sequence, however the text is cut."""

    def __init__(self, stops: Iterable[str]) -> None:
        self.found: str | None = None
        """The stop sequence that ended the text."""
        self._search = Search(stops)

    def feed(self, text: str) -> str:
        """What may be told of the text so far. Nothing more, once a stop sequence was found."""
        if self.found is not None:
            return ""
        told, self.found, _ = self._search.feed(text)
        return told

    def end(self) -> str:
        """What was held back, when the text has ended and it turned out to be no stop sequence."""
        return self._search.end()
