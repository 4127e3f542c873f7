"""Stop sequences, found in a text that comes in pieces."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class _Beginning:
    """What one stop sequence or several begin with, and how it goes on in them."""

    length: int = 0
    next: dict[str, "_Beginning"] = field(default_factory=dict)
    shorter: "_Beginning | None" = None
    """The longest other beginning that this one ends with."""
    stop: str | None = None
    """The longest stop sequence that this one ends with."""


class StopScanner:
    """Gives on what can't be the beginning of a stop sequence, however the text is cut.

    Of several that are met, the one that is whole first counts; of two that end together, the
    longer. Looks at each character once, however many there are (after Aho and Corasick).
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.found: str | None = None
        self._nothing = self._so_far = _beginnings(stops)
        self._held = ""

    def feed(self, text: str) -> str:
        """What may be told of the text so far. Nothing more, once a stop sequence was found."""
        if self.found is not None:
            return ""
        begin = len(self._held)
        text = self._held + text
        for at in range(begin, len(text)):
            self._so_far = self._longer(text[at])
            if (stop := self._so_far.stop) is not None:
                self.found, self._held = stop, ""
                return text[: at + 1 - len(stop)]
        told = len(text) - self._so_far.length
        self._held = text[told:]
        return text[:told]

    def end(self) -> str:
        """What was held back, when the text has ended and it turned out to be no stop sequence."""
        held, self._held, self._so_far = self._held, "", self._nothing
        return held

    def _longer(self, character: str) -> _Beginning:
        known: _Beginning | None = self._so_far
        while known is not None:
            if (longer := known.next.get(character)) is not None:
                return longer
            known = known.shorter
        return self._nothing


def _beginnings(stops: Sequence[str]) -> _Beginning:
    nothing = _Beginning()
    for stop in stops:
        known = nothing
        for length, character in enumerate(stop, 1):
            known = known.next.setdefault(character, _Beginning(length))
        known.stop = stop
    # The shorter ones first: each looks at what was found for those.
    waiting = deque([nothing])
    while waiting:
        known = waiting.popleft()
        for character, longer in known.next.items():
            longer.shorter = _ending(known, character, nothing)
            longer.stop = longer.stop or longer.shorter.stop
            waiting.append(longer)
    return nothing


def _ending(known: _Beginning, character: str, nothing: _Beginning) -> _Beginning:
    shorter = known.shorter
    while shorter is not None:
        if (found := shorter.next.get(character)) is not None:
            return found
        shorter = shorter.shorter
    return nothing
