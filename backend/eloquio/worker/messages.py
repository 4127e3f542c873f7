"""A conversation as OpenAI writes it, made what a model's chat template takes."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Message = dict[str, Any]

# What templates say that refuse the ids of other models: "strings with length 9".
_WANTS_SHORT_IDS = re.compile(r"length\s*(?:!=|<|>=)?\s*9")
_TELLS_NONE_APART = re.compile(r"content['\"]?\]?\s+is\s+(?:not\s+)?none")
_TOOLS_OF_MESSAGE = re.compile(r"message(?:\.tools|\[['\"]tools['\"]\])")
_LOOPS_OVER_CONTENT = re.compile(r"for\s+\w+\s+in\s+message(?:\.content|\[['\"]content['\"]\])")
_IS_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
_MEDIA = {"image_url": "image", "input_audio": "audio", "video_url": "video"}


class Arguments(dict[str, Any]):
    """A call's arguments: a mapping, as most templates want them, and JSON where one is a text."""

    def __str__(self) -> str:
        return json.dumps(self, ensure_ascii=False)

    def __add__(self, other: str) -> str:
        return str(self) + other

    def __radd__(self, other: str) -> str:
        return other + str(self)


def prepared(
    messages: Iterable[Mapping[str, Any]], template: str, *, takes_media: bool = False
) -> list[Message]:
    """Everything that the messages say, in the shape that the template reads.

    Without `takes_media` only the text of a message's parts is left.
    """
    made = [_prepared(message, template, takes_media=takes_media) for message in messages]
    _name_results(made)
    return made


def _prepared(message: Mapping[str, Any], template: str, *, takes_media: bool) -> Message:
    made = dict(message)
    if made.get("role") == "developer" and "developer" not in template:
        made["role"] = "system"
    if calls := made.get("tool_calls"):
        made["tool_calls"] = [_prepared_call(call, template) for call in calls]
    else:
        made.pop("tool_calls", None)
    if "tool_call_id" in made:
        made["tool_call_id"] = _call_id(made["tool_call_id"], template)
    content = made.get("content")
    if content is None:
        keeps_none = "tool_calls" in made and _TELLS_NONE_APART.search(template)
        made["content"] = None if keeps_none else ""
    elif takes_media:
        made["content"] = _parts(content, template)
    else:
        made["content"] = text_of(content)
    return _with_reasoning(made, template)


def _with_reasoning(message: Message, template: str) -> Message:
    """Earlier reasoning, under the name that the template has for it."""
    given = message.get("reasoning_content") or message.get("reasoning")
    if not given or "reasoning_content" in template:
        return message if not given else message | {"reasoning_content": given}
    # gpt-oss's refuses both in a message that calls a tool.
    if re.search(r"\bthinking\b", template) and not (
        message.get("tool_calls") and message["content"]
    ):
        return message | {"thinking": given}
    return message


def text_of(content: Any) -> str:
    """The text of a message, whose parts stand on lines of their own."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(
        part if isinstance(part, str) else str(part.get("text") or part.get("refusal") or "")
        for part in content
        if isinstance(part, str) or part.get("type") in ("text", "refusal")
    )


def _parts(content: Any, template: str) -> Any:
    """Parts as transformers' processors name them, in their order."""
    if isinstance(content, str):
        only_parts = _LOOPS_OVER_CONTENT.search(template) and "is string" not in template
        return [{"type": "text", "text": content}] if only_parts else content
    return [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": _MEDIA[part["type"]]}
        if part.get("type") in _MEDIA
        else part
        for part in content
    ]


def _prepared_call(call: Mapping[str, Any], template: str) -> dict[str, Any]:
    made = dict(call)
    if "id" in made:
        made["id"] = _call_id(made["id"], template)
    function = made.get("function")
    if isinstance(function, Mapping):
        made["function"] = dict(function) | {"arguments": _arguments(function.get("arguments"))}
    return made


def _arguments(given: Any) -> Any:
    try:
        parsed = json.loads(given or "{}") if not isinstance(given, Mapping) else given
    except (TypeError, ValueError, RecursionError):
        return given
    return Arguments(parsed) if isinstance(parsed, Mapping) else given


def _call_id(given: Any, template: str) -> Any:
    """The same id for a call and its result, in the nine characters that Mistral's take."""
    if not isinstance(given, str) or not _WANTS_SHORT_IDS.search(template):
        return given
    return (
        given if _IS_SHORT_ID.fullmatch(given) else hashlib.sha256(given.encode()).hexdigest()[:9]
    )


def _name_results(messages: Sequence[Message]) -> None:
    """Some templates write the tool's name with its result, which OpenAI leaves out."""
    names: dict[Any, str] = {}
    for message in messages:
        for call in message.get("tool_calls", ()):
            function = call.get("function")
            if isinstance(function, Mapping) and "name" in function:
                names[call.get("id")] = function["name"]
        if message.get("role") == "tool" and (name := names.get(message.get("tool_call_id"))):
            message.setdefault("name", name)


def with_tools_in_system(
    messages: list[Message], tools: Sequence[Mapping[str, Any]], template: str
) -> list[Message]:
    """For templates, such as Phi-4's, that look for the tools in the system message."""
    if not tools or not _TOOLS_OF_MESSAGE.search(template):
        return messages
    written = json.dumps([tool.get("function", tool) for tool in tools], ensure_ascii=False)
    if messages and messages[0].get("role") == "system":
        return [messages[0] | {"tools": written}, *messages[1:]]
    return [{"role": "system", "content": "", "tools": written}, *messages]


def with_one_system(messages: list[Message]) -> list[Message]:
    """All system messages as one, in front of the others."""
    systems = [message for message in messages if message.get("role") == "system"]
    if not systems or (len(systems) == 1 and messages[0] is systems[0]):
        return messages
    others = [message for message in messages if message.get("role") != "system"]
    first = dict(systems[0])
    for system in systems[1:]:
        first["content"] = _joined(first["content"], system["content"])
    return [first, *others]


def with_system_in_user(messages: list[Message]) -> list[Message]:
    """The system message in front of what the user says first."""
    if not messages or messages[0].get("role") != "system":
        return messages
    system, others = messages[0], messages[1:]
    if not others or others[0].get("role") != "user":
        return [{"role": "user", "content": system["content"]}, *others]
    return [others[0] | {"content": _joined(system["content"], others[0]["content"])}, *others[1:]]


def alternating(messages: list[Message]) -> list[Message]:
    """Neighbours of one role as one message; calls of tools and their results stay as they are."""
    made: list[Message] = []
    for message in messages:
        last = made[-1] if made else {}
        if (
            message.get("role") in ("user", "assistant")
            and message["role"] == last.get("role")
            and not last.get("tool_calls")
        ):
            content = _joined(last["content"], message["content"])
            made[-1] = last | message | {"content": content}
        else:
            made.append(message)
    return made


MENDINGS: tuple[Callable[[list[Message]], list[Message]], ...] = (
    with_one_system,
    alternating,
    with_system_in_user,
    alternating,
)
"""What is tried, one after the other, where a template refuses messages. Nothing is lost by any."""


def _joined(first: Any, second: Any) -> Any:
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_as_parts(first), *_as_parts(second)]


def _as_parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
