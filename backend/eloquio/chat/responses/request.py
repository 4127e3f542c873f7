"""A request for a response, made the chat completion that answers it."""

from collections.abc import Mapping
from typing import Any

from eloquio.chat.responses.items import messages_of
from eloquio.chat.responses.schema import (
    InputTokensRequest,
    ModelInput,
    ResponseRequest,
    TextFormat,
)
from eloquio.chat.responses.tools import tool_fields
from eloquio.errors import InvalidRequest, NotImplementedHere

_SEND_ALL = "Send the whole conversation as input."

# What asks for something that isn't supported, why, and what to do instead.
_NOT_HERE: Mapping[str, tuple[str, str]] = {
    "previous_response_id": ("Responses aren't stored.", _SEND_ALL),
    "conversation": ("Conversations aren't stored for this API.", _SEND_ALL),
    "prompt": ("Prompts aren't stored.", "Send its text as instructions or input."),
    "background": (
        "A response can't be made in the background.",
        "Start a run instead (POST /v1/runs): it goes on without its reader.",
    ),
    "background_options": (
        "A response can't be made in the background.",
        "Leave background_options out; a run (POST /v1/runs) goes on without its reader.",
    ),
    "context_management": ("A conversation isn't compacted.", "Shorten the input yourself."),
    "moderation": ("Answers aren't moderated.", "Leave moderation out."),
    "access_programs": (
        "Models run on this machine, without access programs.",
        "Leave access_programs out.",
    ),
    "image": ("Pictures reach the model as they are.", "Leave image out."),
    "personality": (
        "A local model has no personalities to choose from.",
        "Describe it in the instructions.",
    ),
}
# A chat's fields that have another name here.
NAMES = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "logprobs": "top_logprobs",
}
_AS_IN_A_CHAT = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "enable_thinking")


def chat_body(request: ResponseRequest) -> dict[str, Any]:
    """The body of the chat completion. Raises InvalidRequest or NotImplementedHere by field."""
    body = input_body(request)
    _refuse_of_serving(request)
    for name in _AS_IN_A_CHAT:
        if (value := getattr(request, name)) is not None:
            body[name] = value
    if request.max_output_tokens is not None:
        body["max_tokens"] = request.max_output_tokens
    if wants_logprobs(request):
        body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    return body


def input_body(request: ResponseRequest | InputTokensRequest) -> dict[str, Any]:
    """The part of the chat completion's body that the model reads."""
    _refuse_what_is_not_here(request)
    if request.input is None:
        raise InvalidRequest("There is no input.", param="input")
    messages = messages_of(request.input)
    if request.instructions:
        messages.insert(0, {"role": "system", "content": request.instructions})
    body: dict[str, Any] = {"messages": messages}
    if request.model is not None:
        body["model"] = request.model
    body |= tool_fields(request)
    if request.reasoning and request.reasoning.effort:
        body["reasoning_effort"] = request.reasoning.effort
    if request.text and request.text.format:
        body |= _response_format(request.text.format)
    return body


def wants_logprobs(request: ResponseRequest) -> bool:
    return bool(request.top_logprobs) or "message.output_text.logprobs" in (request.include or ())


def _response_format(wanted: TextFormat) -> dict[str, Any]:
    match wanted.type:
        case "text":
            return {}
        case "json_object":
            return {"response_format": {"type": "json_object"}}
        case "json_schema":
            for name in ("name", "schema"):
                if wanted.model_dump(by_alias=True)[name] is None:
                    raise InvalidRequest(f"The {name} is missing.", param=f"text.format.{name}")
            schema = wanted.model_dump(by_alias=True, exclude={"type"}, exclude_none=True)
            return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _refuse_what_is_not_here(request: ModelInput) -> None:
    for name, (why, next_step) in _NOT_HERE.items():
        if getattr(request, name, None) not in (None, False):
            raise NotImplementedHere(why, param=name, next_step=next_step)
    if request.truncation == "auto":
        raise NotImplementedHere(
            "Nothing of a conversation is dropped in silence.",
            param="truncation",
            next_step="Leave it out, and shorten the input where it is too long.",
        )
    if request.text and request.text.verbosity in ("low", "high"):
        raise NotImplementedHere(
            "How much a local model says can't be set by a field.",
            param="text.verbosity",
            next_step="Say it in the instructions.",
        )
    _refuse_of_reasoning(request)


def _refuse_of_reasoning(request: ModelInput) -> None:
    if (reasoning := request.reasoning) is None:
        return
    # 'auto' leaves it to the server, and here reasoning is told in full.
    for name in ("summary", "generate_summary"):
        if getattr(reasoning, name) not in (None, "auto"):
            raise NotImplementedHere(
                "Reasoning isn't summarised: it is told in full.",
                param=f"reasoning.{name}",
                next_step="Leave it out, or send 'auto'.",
            )
    for name, plain in (("context", "auto"), ("mode", "standard")):
        if getattr(reasoning, name) not in (None, plain):
            raise NotImplementedHere(
                "The model's own template decides this.",
                param=f"reasoning.{name}",
                next_step=f"Leave it out, or send '{plain}'.",
            )


def _refuse_of_serving(request: ResponseRequest) -> None:
    if request.service_tier not in (None, "auto", "default"):
        raise NotImplementedHere(
            "All requests are served alike.",
            param="service_tier",
            next_step="Leave it out, or send 'auto'.",
        )
    if request.stream_options and request.stream_options.include_obfuscation:
        raise NotImplementedHere(
            "Events aren't padded.",
            param="stream_options.include_obfuscation",
            next_step="Leave it out.",
        )
