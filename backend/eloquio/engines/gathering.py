"""A fast stream's tokens travel gathered: their way costs by the block, not by the token."""

import asyncio
import time

LONGEST_SECONDS = 1 / 30
"""Thirty times a second something new is shown to a person who reads."""
SHARE = 0.1
"""Of the time since the first tokens: a short answer is not held up for long."""


class Gathering:
    """Rests between a stream's blocks, for as long as its connection isn't read.

    Only where blocks come sooner after each other than a rest would take; so never before the
    first, and never where a model says less than 30 tokens a second.
    """

    def __init__(self, transport: asyncio.Transport | None) -> None:
        self._transport = transport
        self._begun_at: float | None = None
        self._waits_since = 0.0

    async def rest(self) -> None:
        """To be awaited after each block that has been sent."""
        now = time.monotonic()
        if self._begun_at is None:
            self._begun_at = now
        seconds = min(LONGEST_SECONDS, (now - self._begun_at) * SHARE)
        if now - self._waits_since < seconds:
            await self._unread(seconds)
            now = time.monotonic()
        self._waits_since = now

    async def _unread(self, seconds: float) -> None:
        transport = self._transport
        if transport is None or not transport.is_reading():
            return
        transport.pause_reading()
        try:
            await asyncio.sleep(seconds)
        finally:
            if not transport.is_closing():
                transport.resume_reading()
