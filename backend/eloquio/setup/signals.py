"""What a signal does while set-up runs."""

import signal
from types import FrameType


def unwind_on_signals() -> None:
    """Let a request to end, or a terminal that closes, unwind as Ctrl-C does.

    The tools that run are ended on the way; they aren't in our process group. What was told to be
    ignored, as `nohup` does, stays ignored.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _unwind)


def _unwind(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
