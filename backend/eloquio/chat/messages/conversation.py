"""Anthropic's turns of blocks, made the messages of a chat completion."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

from eloquio.chat.messages.schema import (
    Base64Source,
    Block,
    FileSource,
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnservedBlock,
    UrlSource,
)
from eloquio.errors import InvalidRequest, NotImplementedHere

ChatMessage = dict[str, Any]
_Kind = TypeVar("_Kind")

_ROLES = {
    "text": ("user", "assistant", "system"),
    "image": ("user",),
    "tool_result": ("user",),
    "tool_use": ("assistant",),
    "thinking": ("assistant",),
    "redacted_thinking": ("assistant",),
}


def chat_messages(system: Sequence[TextBlock], messages: Sequence[Message]) -> list[ChatMessage]:
    """The whole conversation. Turns of one role that follow each other become one.

    Raises InvalidRequest or NotImplementedHere with the path of the block that isn't right.
    """
    _refuse_wrong_turns(messages)
    made = [{"role": "system", "content": _lines(system)}] if system else []
    turns = [
        (role, [block for message in turn for block in message.content])
        # An answer that has to begin with nothing is any answer.
        for role, turn in groupby(filter(_has_content, messages), key=lambda turn: turn.role)
    ]
    _refuse_unanswered_calls(turns)
    for role, blocks in turns:
        match role:
            case "user":
                made += _of_user(blocks)
            case "assistant":
                made.append(_of_assistant(blocks))
            case "system":
                made.append({"role": "system", "content": _lines(_only(TextBlock, blocks))})
    return made


def prefill(messages: Sequence[ChatMessage]) -> str:
    """The text with which the answer has to begin; empty where there is none."""
    last = messages[-1]
    if last["role"] != "assistant":
        return ""
    if "tool_calls" in last or "reasoning_content" in last:
        raise InvalidRequest(
            "A model can only go on after text.",
            param="messages",
            next_step="End with a message of the user's, or with text of the assistant's.",
        )
    text: str = last["content"]
    return text


def _has_content(message: Message) -> bool:
    return any(not isinstance(block, TextBlock) or block.text for block in message.content)


# Made ----------------------------------------------------------------------------------------


def _of_user(blocks: Sequence[Block]) -> Iterator[ChatMessage]:
    """Results of tools are messages of their own, and keep their place."""
    for is_result, some in groupby(blocks, key=lambda block: isinstance(block, ToolResultBlock)):
        if is_result:
            yield from map(_of_result, _only(ToolResultBlock, some))
        else:
            yield {"role": "user", "content": _content(list(some))}


def _of_result(result: ToolResultBlock) -> ChatMessage:
    content = _content(result.content)
    if result.is_error:
        # A chat has no other place for it.
        error: list[dict[str, Any]] = [{"type": "text", "text": "Error:"}]
        content = f"Error: {content}" if isinstance(content, str) else error + content
    return {"role": "tool", "tool_call_id": result.tool_use_id, "content": content}


def _of_assistant(blocks: Sequence[Block]) -> ChatMessage:
    message: ChatMessage = {
        "role": "assistant",
        "content": "".join(block.text for block in _only(TextBlock, blocks)),
    }
    thinking = "".join(block.thinking for block in _only(ThinkingBlock, blocks))
    if thinking:
        message["reasoning_content"] = thinking
    if calls := [_call(block) for block in _only(ToolUseBlock, blocks)]:
        message["tool_calls"] = calls
    return message


def _call(block: ToolUseBlock) -> dict[str, Any]:
    arguments = json.dumps(block.input, ensure_ascii=False)
    function = {"name": block.name, "arguments": arguments}
    return {"id": block.id, "type": "function", "function": function}


def _content(blocks: Sequence[Block]) -> str | list[dict[str, Any]]:
    """One text as it is: not every template takes parts."""
    match blocks:
        case []:
            return ""
        case [TextBlock(text=text)]:
            return text
    return [_part(block) for block in blocks]


def _part(block: Block) -> dict[str, Any]:
    match block:
        case ImageBlock(source=Base64Source() as source):
            url = f"data:{source.media_type};base64,{source.data}"
            return {"type": "image_url", "image_url": {"url": url}}
        case ImageBlock(source=UrlSource(url=url)):
            return {"type": "image_url", "image_url": {"url": url}}
        case TextBlock(text=text):
            return {"type": "text", "text": text}
    raise AssertionError(f"{block.type} was refused before")


def _lines(texts: Iterable[TextBlock]) -> str:
    return "\n".join(block.text for block in texts)


def _only(kind: type[_Kind], blocks: Iterable[Block]) -> list[_Kind]:
    return [block for block in blocks if isinstance(block, kind)]


# Refused -------------------------------------------------------------------------------------


def _refuse_wrong_turns(messages: Sequence[Message]) -> None:
    first = next((message for message in messages if message.role != "system"), messages[0])
    if first.role != "user":
        raise InvalidRequest("The first message has to be the user's.", param="messages.0.role")
    for number, message in enumerate(messages):
        is_last_of_assistant = message.role == "assistant" and number == len(messages) - 1
        if not _has_content(message) and not is_last_of_assistant:
            raise InvalidRequest("A message has to say something.", param=f"messages.{number}")
        for position, block in enumerate(message.content):
            _refuse_wrong_block(block, message.role, f"messages.{number}.content.{position}")


def _refuse_wrong_block(block: Block, role: str, path: str) -> None:
    match block:
        case RedactedThinkingBlock() | TextBlock() | ToolUseBlock() | ThinkingBlock():
            pass
        case UnservedBlock():
            raise NotImplementedHere(
                f"A block of the type {block.type} can't be read by a local model.",
                param=path,
                next_step="Send what it holds as text, or leave it out.",
            )
        case ImageBlock(source=FileSource()):
            raise NotImplementedHere(
                "Files aren't stored.",
                param=f"{path}.source",
                next_step="Send the picture itself, in base64.",
            )
        case ToolResultBlock():
            for position, part in enumerate(block.content):
                _refuse_wrong_block(part, "user", f"{path}.content.{position}")
    if role not in _ROLES[block.type]:
        raise InvalidRequest(f"A {block.type} block can't be the {role}'s.", param=path)


def _refuse_unanswered_calls(turns: Sequence[tuple[str, Sequence[Block]]]) -> None:
    """Each call of a tool has its result in the turn after it, and each result its call before."""
    called: set[str] = set()
    for role, blocks in turns:
        if role == "system":
            continue
        answered = {block.tool_use_id for block in _only(ToolResultBlock, blocks)}
        if missing := sorted(called - answered):
            raise InvalidRequest(
                f"The tool call {missing[0]} has no result in the message after it.",
                param="messages",
                next_step="Send a tool_result block for each tool_use block of the message before.",
            )
        if unknown := sorted(answered - called):
            raise InvalidRequest(
                f"There is no tool call {unknown[0]} in the message before its result.",
                param="messages",
                next_step="Keep the assistant's message with its tool_use blocks before it.",
            )
        called = {block.id for block in _only(ToolUseBlock, blocks)}
