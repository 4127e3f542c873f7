"""What the engine would ignore, or do wrong, in a request that is right.

Seen with llama-server's build 10434; `tests/engine/test_mends.py` tells when a later one needs a
mend no more.
"""

import json
from collections.abc import Mapping
from typing import Any

from eloquio import sse
from eloquio.chat.completions.schema import CompletionRequest
from eloquio.chat.schema import ChatRequest, Message
from eloquio.engines.event_blocks import data_of

_ANY_OBJECT = {"type": "object"}


def are_needed(request: ChatRequest) -> bool:
    """Whether `mended` would change anything: a plain chat's bytes stay as they came."""
    return (
        request.repetition_penalty is not None
        or request.enable_thinking is not None
        or request.chosen_tool is not None
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
    if changed.get("logprobs"):
        _ask_for_an_alternative(changed, "top_logprobs")
    changed["messages"] = [_with_text(message) for message in fields["messages"]]
    return changed


def completion_needs_them(request: CompletionRequest) -> bool:
    """Whether `mended_completion` would change anything."""
    return request.repetition_penalty is not None or request.logprobs == 0 or bool(request.echo)


def mended_completion(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a completion without a chat; a prompt that is echoed is put before it here."""
    changed = {name: value for name, value in fields.items() if name != "echo"}
    _rename_penalty(changed)
    if changed.get("logprobs") is not None:
        _ask_for_an_alternative(changed, "logprobs")
    return changed


def takes_one_call(request: ChatRequest) -> bool:
    """Whether the answer may hold one call of a tool at most."""
    return request.parallel_tool_calls is False or request.chosen_tool is not None


def one_call_of(block: bytes) -> bytes:
    """A block of events without the calls of tools after the first."""
    if b'"tool_calls":' not in block:
        return block
    chunks = [with_one_call(json.loads(data)) for data in data_of(block)]
    return b"".join(sse.event(chunk) for chunk in chunks if chunk is not None)


def with_one_call(chunk: dict[str, Any]) -> dict[str, Any] | None:
    """A stream's chunk without the calls after the first; None where nothing else is in it.

    The engine makes several even where `parallel_tool_calls` is false.
    """
    has_dropped = False
    choices: list[dict[str, Any]] = []
    for choice in chunk.get("choices") or ():
        delta: dict[str, Any] = choice.get("delta") or {}
        pieces = delta.get("tool_calls") or []
        kept = [piece for piece in pieces if not piece.get("index")]
        if len(kept) < len(pieces):
            has_dropped = True
            rest = {name: value for name, value in delta.items() if name != "tool_calls"}
            delta = rest | ({"tool_calls": kept} if kept else {})
            if not delta and not choice.get("finish_reason"):
                continue
            choice = choice | {"delta": delta}
        choices.append(choice)
    if not has_dropped:
        return chunk
    return chunk | {"choices": choices} if choices else None


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


def _ask_for_an_alternative(fields: dict[str, Any], number: str) -> None:
    """Asked for none, the engine doesn't tell the chosen token's probability either."""
    fields[number] = fields.get(number) or 1


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
