"""Whether a starting engine still moves, however long it takes."""

from dataclasses import dataclass

# Asking a hung engine for its health costs it about 0.1 ms of processor time each time. What it
# does of its own accord costs far more than this share of one core.
_LEAST_CPU_SHARE = 0.02
# Less than this an allocator gives and takes by itself.
_LEAST_RESIDENT_BYTES = 64 * 1024


@dataclass(frozen=True)
class Sample:
    """What an engine and its children had done up to one moment."""

    lines: int = 0
    cpu_seconds: float = 0.0
    resident_bytes: int = 0
    bytes_read: int = 0


class Watchdog:
    """Told what an engine has done, it knows how long ago the engine last did anything.

    `now` is any clock in seconds that never goes back.
    """

    def __init__(self, now: float, sample: Sample) -> None:
        self._moved_at = now
        self._sample = sample
        self._cpu_seconds = sample.cpu_seconds
        self._heard: set[str] = set()

    def observe(self, sample: Sample, health: str, now: float) -> None:
        """`health` is what a question for its health brought: "refused", "503" and the like.

        A word that was heard before is no news, or an engine that answers now so and now so would
        seem to move for ever.
        """
        is_news = health not in self._heard
        self._heard.add(health)
        if is_news or self._has_moved_to(sample, now):
            self._moved_at = now
            self._sample = sample
            self._cpu_seconds = sample.cpu_seconds
        # The share of a child that has ended may be gone from the sum.
        self._cpu_seconds = min(self._cpu_seconds, sample.cpu_seconds)

    def idle_seconds(self, now: float) -> float:
        """The time since the last sign that it moved."""
        return now - self._moved_at

    def _has_moved_to(self, sample: Sample, now: float) -> bool:
        spent_seconds = sample.cpu_seconds - self._cpu_seconds
        return (
            sample.lines != self._sample.lines
            or sample.bytes_read != self._sample.bytes_read
            or abs(sample.resident_bytes - self._sample.resident_bytes) > _LEAST_RESIDENT_BYTES
            or spent_seconds > _LEAST_CPU_SHARE * self.idle_seconds(now)
        )
