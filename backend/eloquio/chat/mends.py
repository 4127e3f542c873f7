"""What the engine would ignore, or do wrong, in a request that is right.

Seen with llama-server's build 10434; `tests/engine/test_mends.py` tells when a later one needs a
mend no more. What it does wrong in its reply is mended by `reply_mends.py`.
"""

from collections.abc import Mapping
from typing import Any

from eloquio.chat.completions.schema import CompletionRequest
from eloquio.chat.forced_calls import response_format
from eloquio.chat.schema import ChatRequest, Message

_ANY_OBJECT = {"type": "object"}
_ASKED_BY_US = "n_probs"


def are_needed(request: ChatRequest) -> bool:
    """Whether `mended` would change anything: a plain chat's bytes stay as they came."""
    return (
        request.repetition_penalty is not None
        or request.enable_thinking is not None
        or request.requires_call
        or request.tool_choice == "none"
        or bool(request.logprobs and not request.top_logprobs)
        or (request.response_format is not None and request.response_format.type == "json_object")
        or any(_lacks_text(message) for message in request.messages)
    )


def mended(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a chat request, as the engine takes them; `fields` stays as it is."""
    changed = dict(fields)
    _rename_penalty(changed)
    _tell_the_template_to_think(changed)
    _describe_any_object(changed)
    _leave_the_chosen_tool(changed)
    _describe_the_required_calls(changed)
    _ask_for_probabilities_alone(changed)
    changed["messages"] = [_with_text(message) for message in fields["messages"]]
    return changed


def completion_needs_them(request: CompletionRequest) -> bool:
    """Whether `mended_completion` would change anything."""
    return request.repetition_penalty is not None or request.logprobs == 0 or bool(request.echo)


def mended_completion(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a completion without a chat; a prompt that is echoed is put before it here."""
    changed = {name: value for name, value in fields.items() if name != "echo"}
    _rename_penalty(changed)
    if changed.get("logprobs") == 0:
        # Asked for no alternative, the engine doesn't tell the chosen token's probability either.
        changed["logprobs"] = 1
    return changed


def _rename_penalty(fields: dict[str, Any]) -> None:
    if (penalty := fields.pop("repetition_penalty", None)) is not None:
        fields.setdefault("repeat_penalty", penalty)


def _tell_the_template_to_think(fields: dict[str, Any]) -> None:
    if (thinks := fields.pop("enable_thinking", None)) is not None:
        given = fields.get("chat_template_kwargs") or {}
        fields["chat_template_kwargs"] = {"enable_thinking": thinks, **given}


def _describe_any_object(fields: dict[str, Any]) -> None:
    """Asked for a `json_object`, the engine lets a code fence or even prose pass."""
    asked = fields.get("response_format") or {}
    if asked.get("type") == "json_object":
        schema = asked.get("schema") or _ANY_OBJECT
        fields["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "object", "schema": schema},
        }


def _ask_for_probabilities_alone(fields: dict[str, Any]) -> None:
    """Asked for no alternative, the engine doesn't tell the chosen token's probability either.

    So one is asked for, which `ReplyMends` leaves out: the engine's own name beside it tells that
    nobody else asked.
    """
    if fields.get("logprobs") and not fields.get("top_logprobs"):
        fields |= {"top_logprobs": 1, _ASKED_BY_US: 1}


def _leave_the_chosen_tool(fields: dict[str, Any]) -> None:
    """A choice by name is read as "auto"; of the only tool there is, "required" means the same.

    With "none" the tools would stay in the prompt, and their calls come as text.
    """
    choice = fields.get("tool_choice")
    if choice == "none":
        fields.pop("tools", None)
        del fields["tool_choice"]
    elif isinstance(choice, Mapping):
        name = choice["function"]["name"]
        fields["tools"] = [tool for tool in fields["tools"] if tool["function"]["name"] == name]
        fields["tool_choice"] = "required"
        fields["parallel_tool_calls"] = False


def _describe_the_required_calls(fields: dict[str, Any]) -> None:
    """In place of any other format: what that would shape is the text, of which there is none."""
    if fields.get("tool_choice") == "required":
        is_one = fields.get("parallel_tool_calls") is False
        fields["response_format"] = response_format(fields["tools"], is_one=is_one)


def _lacks_text(message: Message) -> bool:
    if message.role != "assistant" or isinstance(message.content, str):
        return False
    if message.content is None:
        return not message.tool_calls
    return any(part["type"] == "refusal" for part in message.content)


def _with_text(message: dict[str, Any]) -> dict[str, Any]:
    """The assistant's empty message, or its refusal, with a text: the engine refuses it without."""
    if message["role"] != "assistant":
        return message
    content = message.get("content")
    if isinstance(content, list):
        parts = [_text_part(part) for part in content]
        return message if parts == content else message | {"content": parts}
    if content is None and not message.get("tool_calls"):
        return message | {"content": message.get("refusal") or ""}
    return message


def _text_part(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": part["refusal"]} if part["type"] == "refusal" else part
