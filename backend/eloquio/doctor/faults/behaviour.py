"""The words in which a stand-in is told how to behave."""

from collections.abc import Sequence
from typing import Any


class Behaviour:
    """What it does, in the order of its life. Each word is an argument of `write`."""

    describes_late_seconds: float = 0
    """When it is asked for its options, version or devices. For a program, not for a model."""
    # When it is stopped.
    ignores_sigterm: bool = False
    stops_late_seconds: float = 0
    # What it holds and leaves behind.
    outlives_parent: bool = False
    """Takes back that it dies with the process that started it."""
    forks: bool = False
    forks_session: bool = False
    """Its child leads a session of its own, which no signal to the group reaches."""
    # What it writes before anything else.
    says: Sequence[str] = ()
    writes_garbage: bool = False
    floods_bytes: int = 0
    closes_log: bool = False
    # How its start ends.
    fails_starts: int = 0
    """How many of its first starts fail."""
    fails_with: Sequence[str] = ()
    """An option, and its last line where that stands in its command line."""
    fails_without: Sequence[str] = ()
    """Options, and its last line where they don't."""
    dies_by: int = 0
    exits: int | None = None
    grows_bytes: int = 0
    """In silence, a mebibyte every twentieth of a second, and keeps it."""
    moves_seconds: float = 0
    computes_seconds: float = 0
    hangs: bool = False
    # What it says of itself.
    chatters: bool = False
    toils: bool = False
    """Computes all the time while it listens, and says nothing."""
    ready_after_seconds: float = 0
    health: str = ""
    """Sent instead of a reply."""
    props: str = ""
    alias: str | None = ""
    """Whom it says it is, if not who it was told to be; None says nothing."""
    context: int = 8192
    # How it answers.
    refuses: tuple[int, Any] | None = None
    answers: str = ""
    """Sent instead of a reply."""
    never_answers: bool = False
    computes: bool = False
    """Computes for ever before it answers, without a pause in which Python could do more."""
    streams: Sequence[str] = ()
    """The events of its stream as they are; else they are made of `text`."""
    text: str = "It is a stand-in that answers."
    repeats: int = 1
    pause_seconds: float = 0
    bytes_at_once: int = 0
    """Sends a stream in pieces of so many bytes, wherever that cuts it."""
    then: str = ""
    """After the text: "crash", "kill", "hang", "error" or "close"; else the reply ends well."""
    ignores_closed: bool = False

    def __init__(self, words: dict[str, Any]) -> None:
        for word, value in words.items():
            if not hasattr(Behaviour, word):
                raise TypeError(f"a stand-in knows no {word!r}")
            setattr(self, word, value)
