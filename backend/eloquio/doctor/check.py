"""What a check of the doctor's says."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `next_step` says what to do about a warning or a failure."""

    name: str
    verdict: Verdict
    sentence: str
    next_step: str | None = None
    evidence: str | None = None
