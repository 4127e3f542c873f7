"""Fields of OpenAI's that no local model can answer for: refused by name, never ignored."""

from collections.abc import Mapping
from typing import Any

from eloquio.errors import InvalidRequest, NotImplementedHere

# Those that change nothing about an answer (user, metadata, prediction…) are no one's to refuse.
_ONLY_AS: Mapping[str, tuple[object, ...]] = {
    "audio": (),
    "web_search_options": (),
    "store": (False,),
    "service_tier": ("auto", "default"),
    "verbosity": ("medium",),
    "modalities": (["text"],),
}
_NEXT_STEPS = {"store": "Leave store out; an answer that is to be kept is a run: POST /v1/runs."}
_REPLACED = {"functions": "tools", "function_call": "tool_choice"}


def refuse_what_cannot_be_had(fields: Mapping[str, Any]) -> None:
    """NotImplementedHere, or InvalidRequest for a field that another has replaced."""
    for name in _ONLY_AS.keys() & fields.keys():
        if (value := fields[name]) is not None and value not in _ONLY_AS[name]:
            raise NotImplementedHere(
                f"What {name} asks for can't be had here.",
                param=name,
                next_step=_NEXT_STEPS.get(name, f"Leave {name} out."),
            )
    for name in _REPLACED.keys() & fields.keys():
        if fields[name] is not None:
            instead = _REPLACED[name]
            raise InvalidRequest(
                f"The request isn't right. {name}: OpenAI has replaced it by {instead}.",
                param=name,
                next_step=f"Send {instead}.",
            )
