"""What a signal does while set-up runs."""

from types import FrameType


def end_on_signal(number: int, frame: FrameType | None) -> None:
    """Unwind, so that the tools that run are ended on the way."""
    raise SystemExit(128 + number)
