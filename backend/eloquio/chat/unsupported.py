"""Fields of OpenAI's that no local model can answer for: refused by name, never ignored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eloquio.errors import InvalidRequest, NotImplementedHere


@dataclass(frozen=True)
class _Unsupported:
    why: str
    next_step: str
    except_as: tuple[object, ...] = ()
    """The values that ask for what is done anyway."""


# Those that change nothing about an answer (user, metadata, prediction…) are no one's to refuse.
_UNSUPPORTED: Mapping[str, _Unsupported] = {
    "audio": _Unsupported(
        "A chat answers in text, not in sound.", "Leave audio out; have the text spoken afterwards."
    ),
    "modalities": _Unsupported(
        "A chat answers in text only.", 'Leave modalities out, or send ["text"].', (["text"],)
    ),
    "web_search_options": _Unsupported(
        "Nothing is searched on the web for an answer: models run on this machine alone.",
        "Leave web_search_options out; offer a search as a tool of your own.",
    ),
    "store": _Unsupported(
        "A chat completion isn't stored.",
        "Leave store out; an answer that is to be kept is a run: POST /v1/runs.",
        (False,),
    ),
    "service_tier": _Unsupported(
        "All requests are served alike.",
        "Leave service_tier out, or send auto.",
        ("auto", "default"),
    ),
    "verbosity": _Unsupported(
        "How much a local model says can't be set by a field.",
        "Leave verbosity out; say in the system's message how long the answer should be.",
        ("medium",),
    ),
}
_REPLACED = {"functions": "tools", "function_call": "tool_choice"}


def refuse_what_cannot_be_had(fields: Mapping[str, Any]) -> None:
    """NotImplementedHere, or InvalidRequest for a field that another has replaced."""
    for name in _UNSUPPORTED.keys() & fields.keys():
        field = _UNSUPPORTED[name]
        if (value := fields[name]) is not None and value not in field.except_as:
            raise NotImplementedHere(
                f"{name} isn't supported. {field.why}", param=name, next_step=field.next_step
            )
    for name in _REPLACED.keys() & fields.keys():
        if fields[name] is not None:
            instead = _REPLACED[name]
            raise InvalidRequest(
                f"The request isn't right. {name}: OpenAI has replaced it by {instead}.",
                param=name,
                next_step=f"Send {instead}.",
            )
