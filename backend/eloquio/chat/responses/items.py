"""The items of an input, made the messages of a chat.

A response tells reasoning, text and calls of tools as items in a row; a chat holds them in one
message of the assistant's. They are put together in that order, and what comes out of order begins
a new message.
"""

import json
from collections.abc import Container, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from eloquio.chat.responses.schema import Item
from eloquio.errors import InvalidRequest, NotImplementedHere

Message = dict[str, Any]

Shape = TypeVar("Shape", bound=BaseModel)

_TEXTS = ("input_text", "output_text", "text")


class _Known(BaseModel):
    """Of an item, what is acted on: ids, states and notes of whoever made it change nothing."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _MessageItem(_Known):
    role: Literal["user", "assistant", "system", "developer"]
    content: Any


class _Call(_Known):
    call_id: str
    name: str
    arguments: str


class _CallOutput(_Known):
    call_id: str
    output: Any


class _Thought(_Known):
    text: str


class _ReasoningItem(_Known):
    content: list[_Thought] | None = None
    summary: list[_Thought] | None = None
    encrypted_content: str | None = None


class _Text(_Known):
    text: str


class _Refusal(_Known):
    refusal: str


class _Picture(_Known):
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


def messages_of(items: Sequence[Item]) -> list[Message]:
    """Raises InvalidRequest or NotImplementedHere, which name the item: `input.3.call_id`."""
    messages: list[Message] = []
    calls: set[str] = set()
    for position, item in enumerate(items):
        _add(messages, calls, item, f"input.{position}")
    return messages


def parsed(shape: type[Shape], value: object, param: str) -> Shape:
    """`value` as a `shape`, or InvalidRequest that names the place in it."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join([param, *map(str, first["loc"])])
        raise InvalidRequest(
            f"The request isn't right. {where}: {first['msg']}.", param=where
        ) from error


def _add(messages: list[Message], calls: set[str], item: Item, param: str) -> None:
    """`calls` are the ids of those so far."""
    match _type_of(item):
        case "message":
            _add_message(messages, parsed(_MessageItem, item, param), param)
        case "reasoning":
            _add_reasoning(messages, parsed(_ReasoningItem, item, param), param)
        case "function_call":
            call = parsed(_Call, item, param)
            _add_call(messages, call, param)
            calls.add(call.call_id)
        case "function_call_output":
            _add_output(messages, calls, parsed(_CallOutput, item, param), param)
        case "item_reference":
            raise NotImplementedHere(
                "Nothing is stored that an item could refer to.",
                param=f"{param}.id",
                next_step="Send the item itself.",
            )
        case str() as other:
            raise NotImplementedHere(
                f"An item of the type {other} isn't supported: a model reads messages, reasoning, "
                "and calls of functions with what came of them.",
                param=f"{param}.type",
                next_step="Leave it out, or tell what it says as a message.",
            )
        case _:
            raise InvalidRequest(f"{param}.type: It is a text.", param=f"{param}.type")


def _type_of(item: Item) -> object:
    if (kind := item.get("type")) is not None:
        return kind
    return "item_reference" if item.keys() == {"id"} else "message"


def _add_message(messages: list[Message], item: _MessageItem, param: str) -> None:
    content = _content(item.content, f"{param}.content")
    if item.role != "assistant":
        # Chat templates know the developer's word as the system's.
        role = "user" if item.role == "user" else "system"
        messages.append({"role": role, "content": content})
    elif _has_only_thought(messages):
        messages[-1]["content"] = content
    else:
        messages.append({"role": "assistant", "content": content})


def _add_reasoning(messages: list[Message], item: _ReasoningItem, param: str) -> None:
    thoughts = item.content or item.summary or []
    text = "\n".join(thought.text for thought in thoughts)
    if not text and item.encrypted_content:
        raise NotImplementedHere(
            "Only the server that encrypted reasoning can read it.",
            param=f"{param}.encrypted_content",
            next_step="Leave this item out.",
        )
    if _has_only_thought(messages):
        messages[-1]["reasoning_content"] += f"\n{text}"
    elif text:
        messages.append({"role": "assistant", "content": "", "reasoning_content": text})


def _add_call(messages: list[Message], item: _Call, param: str) -> None:
    arguments = item.arguments or "{}"
    try:
        json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            "The arguments of a call aren't JSON.",
            param=f"{param}.arguments",
            next_step="Leave out a call that was cut off, or mend its arguments.",
        ) from error
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": ""})
    messages[-1].setdefault("tool_calls", []).append(
        {
            "id": item.call_id,
            "type": "function",
            "function": {"name": item.name, "arguments": arguments},
        }
    )


def _add_output(
    messages: list[Message], calls: Container[str], item: _CallOutput, param: str
) -> None:
    if item.call_id not in calls:
        raise InvalidRequest(
            f"No call before it has the id {item.call_id}.",
            param=f"{param}.call_id",
            next_step="Send the function_call item that it answers, before it.",
        )
    content = _content(item.output, f"{param}.output")
    messages.append({"role": "tool", "tool_call_id": item.call_id, "content": content})


def _has_only_thought(messages: Sequence[Message]) -> bool:
    """Whether the last message is the assistant's, with nothing in it yet but reasoning."""
    if not messages or "reasoning_content" not in messages[-1]:
        return False
    return not messages[-1]["content"] and "tool_calls" not in messages[-1]


def _content(value: object, param: str) -> str | list[Item]:
    """One text stays a text: not every chat template takes parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise InvalidRequest(f"{param}: It is a text or a list of parts.", param=param)
    parts = [_part(part, f"{param}.{position}") for position, part in enumerate(value)]
    if not parts:
        return ""
    text = parts[0].get("text")
    return text if len(parts) == 1 and isinstance(text, str) else parts


def _part(part: object, param: str) -> Item:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _TEXTS:
        return {"type": "text", "text": parsed(_Text, part, param).text}
    if kind == "refusal":
        return {"type": "text", "text": parsed(_Refusal, part, param).refusal}
    if kind == "input_image":
        return _picture(parsed(_Picture, part, param), param)
    if isinstance(kind, str):
        raise NotImplementedHere(
            f"A part of the type {kind} isn't supported: a message holds texts and pictures.",
            param=f"{param}.type",
            next_step="Send texts as input_text and pictures as input_image.",
        )
    raise InvalidRequest(f"{param}.type: It is missing or no text.", param=f"{param}.type")


def _picture(picture: _Picture, param: str) -> Item:
    if picture.file_id is not None:
        raise NotImplementedHere(
            "Files aren't stored.",
            param=f"{param}.file_id",
            next_step="Send the picture as a data URL in image_url.",
        )
    if not picture.image_url:
        raise InvalidRequest("A picture is missing.", param=f"{param}.image_url")
    image: Item = {"url": picture.image_url}
    if picture.detail is not None:
        image["detail"] = picture.detail
    return {"type": "image_url", "image_url": image}
