"""A call that a request requires: asked for by a schema, and found in the text that comes of it.

By `tool_choice` alone llama-server (build 10434) lets a model write any text first, and end at its
limit without a call. A schema binds it from its first word on, or from its last thought.
"""

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eloquio.errors import ToolNotCalled

_MARK = re.compile(r'["\\{}\[\]]')
# How deep in brackets a call begins, and its arguments.
_CALL, _ARGUMENTS = 2, 3
_SAY_WHAT_THEY_ARE = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf"})


def response_format(tools: Sequence[Mapping[str, Any]], *, is_one: bool) -> dict[str, Any]:
    """That of an answer which is a list of calls, each by its name and its arguments."""
    functions = [tool["function"] for tool in tools]
    schema = {
        "type": "array",
        "items": {"anyOf": [_call(function["name"]) for function in functions]},
        "minItems": 1,
        "$defs": {each["name"]: _arguments(each) for each in functions},
    }
    if is_one:
        schema["maxItems"] = 1
    return {"type": "json_schema", "json_schema": {"name": "calls", "schema": schema}}


class CallsInText:
    """Takes such an answer's text in pieces, cut anywhere, and gives what a stream tells of calls.

    ToolNotCalled where the text is something else.
    """

    def __init__(self) -> None:
        self.has_called = False
        self._calls = 0
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False
        self._head = ""

    def feed(self, text: str) -> list[dict[str, Any]]:
        """The deltas of `tool_calls` that `text` completes."""
        if self._depth == 0 and not self._calls and text.strip()[:1] not in ("", "["):
            raise not_called()
        told: list[dict[str, Any]] = []
        for piece in self._told(text):
            if told and told[-1]["index"] == piece["index"]:
                told[-1]["function"]["arguments"] += piece["function"]["arguments"]
            else:
                told.append(piece)
        return told

    def _told(self, text: str) -> Iterator[dict[str, Any]]:
        begin = 0
        for at, bracket in self._brackets(text):
            if bracket in "{[":
                self._depth += 1
                if self._depth == _CALL:
                    begin, self._head = at, ""
                elif self._depth == _ARGUMENTS:
                    yield self._begun(self._head + text[begin:at])
                    begin = at
            else:
                self._depth -= 1
                if self._depth == _CALL:
                    yield self._more(text[begin : at + 1])
                    begin = at + 1
        if self._depth >= _ARGUMENTS and begin < len(text):
            yield self._more(text[begin:])
        elif self._depth == _CALL:
            self._head += text[begin:]

    def _brackets(self, text: str) -> Iterator[tuple[int, str]]:
        """Those that are no part of a string."""
        escaped = 0 if self._is_escaped else -1
        for match in _MARK.finditer(text):
            at, mark = match.start(), match[0]
            if at == escaped:
                continue
            if mark == "\\":
                escaped = at + 1
            elif mark == '"':
                self._is_in_string = not self._is_in_string
            elif not self._is_in_string:
                yield at, mark
        self._is_escaped = escaped == len(text)

    def _begun(self, head: str) -> dict[str, Any]:
        try:
            name = json.loads(head + "null}")["name"]
        except (ValueError, KeyError, TypeError):
            raise not_called() from None
        self._calls += 1
        self.has_called = True
        return {
            "index": self._calls - 1,
            "id": f"call_{uuid.uuid4().hex}",
            "type": "function",
            "function": {"name": name, "arguments": ""},
        }

    def _more(self, arguments: str) -> dict[str, Any]:
        return {"index": self._calls - 1, "function": {"arguments": arguments}}


def not_called() -> ToolNotCalled:
    return ToolNotCalled(
        "The model ended its answer without the call of a tool that tool_choice requires.",
        param="tool_choice",
    )


def _call(name: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": {"$ref": f"#/$defs/{name}"}},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _arguments(function: Mapping[str, Any]) -> dict[str, Any]:
    """The function's own schema, at home in another; without any, it takes any object."""
    schema: dict[str, Any] = _moved(function.get("parameters") or {}, f"#/$defs/{function['name']}")
    return schema if schema.keys() & _SAY_WHAT_THEY_ARE else {"type": "object", **schema}


def _moved(value: Any, to: str) -> Any:  # noqa: ANN401
    """With the references that point into the schema itself pointing to where it now is."""
    if isinstance(value, list):
        return [_moved(item, to) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: to + part[1:]
        if name == "$ref" and isinstance(part, str) and part.startswith("#")
        else _moved(part, to)
        for name, part in value.items()
    }
