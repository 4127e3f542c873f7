"""What a running engine says of itself, whichever kind it is of."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from eloquio.worker_plan import ModelKind

Loader = Literal["llama_server", "transformers", "unsloth"]
"""What really holds the model and computes."""


@dataclass(frozen=True)
class Facts:
    """From `/props`. What only a worker tells is left at its default by the others."""

    context_length: int
    slots: int
    """How many requests it answers at once."""
    chat_template: str
    is_vision: bool
    has_audio_input: bool
    supports_tools: bool
    supports_reasoning: bool
    loader: Loader = "llama_server"
    kind: ModelKind | None = None
    adapters: tuple[str, ...] = ()
    """By the names under which a request may ask for them."""
    default_adapter: str | None = None
    warnings: tuple[str, ...] = ()
    dtype: str | None = None
    device: str | None = None

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> "Facts":
        capabilities = properties.get("chat_template_caps") or {}
        modalities = properties.get("modalities") or {}
        template = str(properties.get("chat_template") or "")
        settings = properties.get("default_generation_settings") or {}
        loader, kind = properties.get("loader"), properties.get("kind")
        return cls(
            context_length=int(settings.get("n_ctx") or 0),
            slots=max(1, int(properties.get("total_slots") or 1)),
            chat_template=template,
            is_vision=bool(modalities.get("vision")),
            has_audio_input=bool(modalities.get("audio")),
            supports_tools=bool(capabilities.get("supports_tools")),
            supports_reasoning=bool(
                capabilities.get("supports_reasoning_effort")
                or re.search(r"enable_thinking|<think>|reasoning_content|thinking", template)
            ),
            loader=cast("Loader", loader) if loader in get_args(Loader) else "llama_server",
            kind=cast("ModelKind", kind) if kind in get_args(ModelKind) else None,
            adapters=_texts(properties.get("adapters")),
            default_adapter=_text(properties.get("default_adapter")),
            warnings=_texts(properties.get("warnings")),
            dtype=_text(properties.get("dtype")),
            device=_text(properties.get("device")),
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _texts(values: object) -> tuple[str, ...]:
    told = values if isinstance(values, Iterable) and not isinstance(values, str) else ()
    return tuple(text for value in told if (text := _text(value)) is not None)
