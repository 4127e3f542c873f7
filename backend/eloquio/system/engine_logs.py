"""Reading what the engines write, from where it was read last."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from eloquio.engines.engine import Engine
from eloquio.engines.exits import without_paths
from eloquio.engines.log import LogRing


class LogLine(BaseModel):
    model: str
    line: str


class LinesSkipped(BaseModel):
    """An engine wrote more between two readings than is kept of it."""

    model: str
    skipped: int


LogEvent = LogLine | LinesSkipped


@dataclass
class _Place:
    ring: LogRing
    line_count: int
    """How many of its lines were read, or are none of the reader's concern."""


class LogReader:
    """Each start of an engine has a log of its own; what one wrote at its end is read to the end.

    Of those that are there at the first reading, it reads the last `tail` lines.
    """

    def __init__(self, tail: int, model: str | None = None) -> None:
        """`model` None reads all."""
        self._tail: int | None = tail
        self._model = model
        self._places: dict[Engine, _Place] = {}

    def read(self, engines: Sequence[Engine]) -> list[LogEvent]:
        """What is new, `engines` being all there are now."""
        wanted = [engine for engine in engines if self._model in (None, engine.spec.model)]
        gone = [engine for engine in self._places if engine not in wanted]
        events = [event for engine in (*gone, *wanted) for event in self._news(engine)]
        for engine in gone:
            del self._places[engine]
        self._tail = None
        return events

    def _news(self, engine: Engine) -> Iterator[LogEvent]:
        place = self._places.get(engine)
        if place is None:
            place = _Place(engine.log, self._first_line(engine.log))
        elif place.ring is not engine.log:
            yield from _unread(engine.spec.model, place)
            place = _Place(engine.log, 0)
        self._places[engine] = place
        yield from _unread(engine.spec.model, place)

    def _first_line(self, ring: LogRing) -> int:
        if self._tail is None:
            return 0  # it started while it was read: all of it is new
        return max(0, ring.line_count - min(self._tail, len(ring.lines)))


def _unread(model: str, place: _Place) -> Iterator[LogEvent]:
    count = place.ring.line_count - place.line_count
    if count == 0:
        return
    place.line_count = place.ring.line_count
    lines = place.ring.lines[-count:]
    if count > len(lines):
        yield LinesSkipped(model=model, skipped=count - len(lines))
    for line in lines:
        yield LogLine(model=model, line=without_paths(line))
