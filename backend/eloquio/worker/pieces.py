"""What an answer's text is made of."""

import json
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ID_CHARACTERS = string.ascii_letters + string.digits


class NotACall(Exception):
    """The text isn't a call of a tool, so it is content."""


@dataclass(frozen=True)
class Content:
    """A piece of what the model says."""

    text: str


@dataclass(frozen=True)
class Reasoning:
    """A piece of what it thinks before."""

    text: str


@dataclass(frozen=True)
class Call:
    """A whole call of a tool. `arguments` is JSON; the indices of an answer are 0, 1, 2 …"""

    index: int
    id: str
    name: str
    arguments: str


Piece = Content | Reasoning | Call


@dataclass(frozen=True)
class NamedArguments:
    """A call as the model wrote it; the id only where the model gave one."""

    name: str
    arguments: Mapping[str, Any]
    id: str | None = None

    def numbered(self, index: int) -> Call:
        return Call(index, self.id or new_call_id(), self.name, written(self.arguments))


def new_call_id() -> str:
    """Nine letters or digits: Mistral's templates refuse any other id."""
    return "".join(secrets.choice(_ID_CHARACTERS) for _ in range(9))


def written(arguments: Mapping[str, Any]) -> str:
    """As JSON. Raises NotACall for what JSON doesn't have, such as an infinite number."""
    try:
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair: as an escape it is JSON
        return json.dumps(arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotACall from error
    return text


def parsed_json(text: str) -> Any:
    """Line breaks inside strings are taken, as models write them. Raises NotACall."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise NotACall from error
