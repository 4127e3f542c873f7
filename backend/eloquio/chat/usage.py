"""What an answer took, read where an engine tells it, and told in each API's own words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Usage:
    """In tokens. The prompt's count the cached ones too, the completion's those of reasoning."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        """From a chunk's `usage`."""
        return cls(
            prompt=told.get("prompt_tokens") or 0,
            completion=told.get("completion_tokens") or 0,
            cached=(told.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
            reasoning=(told.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0,
        )

    @classmethod
    def of_timings(cls, timings: Mapping[str, Any]) -> Self:
        """From a chunk in the middle of an answer: what it took so far."""
        cached = timings.get("cache_n") or 0
        return cls(
            prompt=(timings.get("prompt_n") or 0) + cached,
            completion=timings.get("predicted_n") or 0,
            cached=cached,
        )

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            prompt=self.prompt + other.prompt,
            completion=self.completion + other.completion,
            cached=self.cached + other.cached,
            reasoning=self.reasoning + other.reasoning,
        )

    @property
    def total(self) -> int:
        return self.prompt + self.completion

    def of_chat(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.total,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }

    def of_message(self) -> dict[str, Any]:
        """All that was read counts as input: nothing here is cheaper because it was cached."""
        return {
            "input_tokens": self.prompt,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": self.completion,
        }

    def of_response(self) -> dict[str, Any]:
        return {
            "input_tokens": self.prompt,
            "input_tokens_details": {"cached_tokens": self.cached, "cache_write_tokens": 0},
            "output_tokens": self.completion,
            "output_tokens_details": {"reasoning_tokens": self.reasoning},
            "total_tokens": self.total,
        }
