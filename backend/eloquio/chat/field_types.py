"""The types of a chat request's fields that are more than a number or a text."""

from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator, StringConstraints
from pydantic_core import PydanticCustomError

from eloquio.errors import InvalidRequest, NotImplementedHere

_MAX_STOPS = 16
MOST_MESSAGES = 4096
"""A template takes a time that grows with their square, in which an engine can't be stopped: about
2 s for so many on two cores, and 7 s for twice as many. Their calls of tools count as well."""
MOST_TOOLS = 512
"""The same: 0.6 s for 800 of them, and 6 s for 3200."""


def refuse_too_many(number: int, param: str) -> None:
    """InvalidRequest where a conversation has more messages and calls than a template may get."""
    if number > MOST_MESSAGES:
        raise InvalidRequest(
            f"The conversation has {number} messages and calls of tools; {MOST_MESSAGES} can be "
            "put into a prompt.",
            param=param,
            next_step="Leave out the oldest ones, or put several into one.",
        )


def few_enough(param: str) -> BeforeValidator:
    """Looks at a list's length before it looks at any of its items."""

    def check(value: object) -> object:
        if isinstance(value, list):
            refuse_too_many(len(value), param)
        return value

    return BeforeValidator(check)


def _whole(value: object) -> object:
    """JSON has one kind of number: 7.0 is as whole as 7."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _content(value: object) -> object:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise PydanticCustomError("content", "Input should be a text or a list of parts")
    if not value:
        raise PydanticCustomError("content", "A list of parts should hold at least one")
    for part in value:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            raise PydanticCustomError("content", "Each part should be an object with a type")
        if kind in ("text", "refusal") and not isinstance(part.get(kind), str):
            raise PydanticCustomError("content", f"A part of the type {kind} should hold its text")
    return value


def _stops(value: object) -> object:
    stops = [value] if isinstance(value, str) else value
    if stops is None:
        return None
    if not isinstance(stops, list) or not all(isinstance(stop, str) and stop for stop in stops):
        raise PydanticCustomError("stop", "Input should be a text or a list of texts, none empty")
    if len(stops) > _MAX_STOPS:
        raise PydanticCustomError("stop", f"There may be {_MAX_STOPS} texts at most")
    return value


def _tool_choice(value: object) -> object:
    if value is None or value in ("none", "auto", "required"):
        return value
    if isinstance(value, dict) and isinstance(kind := value.get("type"), str):
        if kind != "function":
            raise NotImplementedHere(
                f"A tool_choice of the type {kind} isn't supported: a model can be told to call "
                "none, any, or one function.",
                param="tool_choice",
                next_step="Send none, auto, required, or a function by its name.",
            )
        function = value.get("function")
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            return value
    raise PydanticCustomError(
        "tool_choice", "Input should be none, auto, required, or a function by its name"
    )


def _adapter(value: object) -> object:
    if value is None or isinstance(value, bool | str):
        return value
    raise PydanticCustomError("adapter", "Input should be true, false or an adapter's name")


def _token_id(value: object) -> object:
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return value
    raise PydanticCustomError("token_id", "A key should be the number of a token")


WholeNumber = Annotated[int, BeforeValidator(_whole)]
Content = Annotated[
    str | list[dict[str, Any]] | None,
    PlainValidator(_content, json_schema_input_type=str | list[dict[str, Any]] | None),
]
Stops = Annotated[
    str | list[str] | None, PlainValidator(_stops, json_schema_input_type=str | list[str] | None)
]
ToolChoice = Annotated[
    str | dict[str, Any] | None,
    PlainValidator(_tool_choice, json_schema_input_type=str | dict[str, Any] | None),
]
Adapter = Annotated[
    bool | str | None, PlainValidator(_adapter, json_schema_input_type=bool | str | None)
]
TokenId = Annotated[str, PlainValidator(_token_id, json_schema_input_type=str)]
ToolName = Annotated[str, StringConstraints(pattern="^[a-zA-Z0-9_-]{1,64}$")]
