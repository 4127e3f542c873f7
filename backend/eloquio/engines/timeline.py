"""How long each part of a request took, from its arrival to its last token."""

import time
from dataclasses import dataclass, field


@dataclass
class Timeline:
    """Marks are set once, each by whoever reaches it first. All times are in milliseconds."""

    started: float = field(default_factory=time.time)
    """In seconds since 1970."""
    keeps_steps: bool = False
    steps_ms: list[float] = field(default_factory=list)
    """When each part of a streamed answer came, if that is kept; usually one token each."""
    media_ms: float | None = None
    """For making pictures and sound what the engine takes."""
    prompt_ms: float | None = None
    """What the engine itself says it needed to read the prompt."""
    asked_ms: float | None = None
    """When the engine got the request: the queue's end, and a load's where one was needed."""
    first_token_ms: float | None = None
    ended_ms: float | None = None
    _began: float = field(default_factory=time.perf_counter)

    def now_ms(self) -> float:
        return (time.perf_counter() - self._began) * 1000

    def media_is_made(self) -> None:
        self.media_ms = self.now_ms()

    def is_asked(self) -> None:
        if self.asked_ms is None:
            self.asked_ms = self.now_ms()

    def comes(self) -> None:
        """A part of the answer came."""
        if self.first_token_ms is None:
            self.first_token_ms = self.now_ms()
        if self.keeps_steps:
            self.steps_ms.append(round(self.now_ms(), 2))

    def ends(self) -> None:
        if self.ended_ms is None:
            self.ended_ms = self.now_ms()

    @property
    def queue_ms(self) -> float | None:
        return None if self.asked_ms is None else self.asked_ms - (self.media_ms or 0.0)

    @property
    def prefill_ms(self) -> float | None:
        """Reading the prompt: what the engine says, else all that passed before the first token."""
        if self.prompt_ms is not None or self.first_token_ms is None or self.asked_ms is None:
            return self.prompt_ms
        return self.first_token_ms - self.asked_ms

    @property
    def decode_ms(self) -> float | None:
        if self.ended_ms is None or self.first_token_ms is None:
            return None
        return self.ended_ms - self.first_token_ms

    def phases(self) -> dict[str, float | None]:
        """By the names under which they are told: null where it wasn't reached, or isn't over."""
        phases = {
            "queue_ms": self.queue_ms,
            "media_ms": self.media_ms,
            "prefill_ms": self.prefill_ms,
            "first_token_ms": self.first_token_ms,
            "decode_ms": self.decode_ms,
            "total_ms": self.ended_ms,
        }
        return {name: None if ms is None else round(ms, 2) for name, ms in phases.items()}
