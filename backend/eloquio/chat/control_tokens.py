"""A person's text must not forge a turn: control tokens in it are made texts like any other.

An engine reads the prompt that its template made as one text, in which a message's `<|im_end|>` and
the template's own are the same token.
"""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from eloquio.errors import InvalidRequest

# Shows nothing and breaks no line, but what it stands in is no token any more.
_WORD_JOINER = "\N{WORD JOINER}"
# Of a message, what isn't put into the prompt as a text.
_NOT_TEXT = frozenset({"role", "type", "id", "tool_call_id", "image_url", "input_audio"})


class ControlTokens:
    """The texts of one model's control tokens, made once for all its requests."""

    def __init__(self, tokens: Iterable[str]) -> None:
        known = sorted({token for token in tokens if len(token) > 1})
        self._tokens = frozenset(known)
        # By their first two characters, since a model may have thousands that differ in a number.
        lengths: dict[str, set[int]] = {}
        for token in known:
            lengths.setdefault(token[:2], set()).add(len(token))
        self._lengths = {begin: sorted(found) for begin, found in lengths.items()}
        self._in_text = _beginnings(self._lengths)
        self._in_json = tuple(_written_beginnings(self._lengths))

    def defused(self, body: bytes) -> bytes:
        """The JSON of a chat request in which no message holds a control token.

        The same object where none did. What is changed reads the same to a person.
        """
        if not any(pattern.search(body) for pattern in self._in_json):
            return body
        fields: dict[str, Any] = json.loads(body)
        changed = self.defused_fields(fields)
        return body if changed is fields else json.dumps(changed).encode()

    def defused_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The same for a request that was parsed already."""
        changed = {
            "messages": self._defused(fields.get("messages")),
            "tools": self._with_defused_descriptions(fields.get("tools")),
            "chat_template_kwargs": self._defused(fields.get("chat_template_kwargs")),
        }
        if all(value is fields.get(name) for name, value in changed.items()):
            return fields
        return fields | {name: value for name, value in changed.items() if name in fields}

    def _defused(self, value: Any) -> Any:  # noqa: ANN401
        match value:
            case str():
                return self._defused_text(value)
            case list():
                items = [self._defused(item) for item in value]
                return (
                    items if any(a is not b for a, b in zip(items, value, strict=True)) else value
                )
            case dict():
                return self._defused_object(value)
            case _:
                return value

    def _defused_object(self, value: dict[str, Any]) -> dict[str, Any]:
        changed = {
            name: part
            if name in _NOT_TEXT
            else self._defused_arguments(part)
            if name == "arguments" and isinstance(part, str)
            else self._defused(part)
            for name, part in value.items()
        }
        return changed if any(changed[name] is not value[name] for name in value) else value

    def _defused_arguments(self, arguments: str) -> str:
        """A call's: a template may write them anew, without the escapes that they hold as JSON."""
        try:
            parsed = json.loads(arguments)
            changed = self._defused(parsed)
        except ValueError:
            return self._defused_text(arguments)
        except RecursionError:
            raise InvalidRequest(
                "The arguments of a call are nested too deeply.", param="messages"
            ) from None
        if changed is parsed:
            return self._defused_text(arguments)
        return self._defused_text(json.dumps(changed, ensure_ascii=False))

    def _with_defused_descriptions(self, value: Any) -> Any:  # noqa: ANN401
        """Of tools only these: names and values are what the model has to write to the letter."""
        if isinstance(value, list):
            items = [self._with_defused_descriptions(item) for item in value]
            return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        if not isinstance(value, dict):
            return value
        changed = {
            name: self._defused_text(part)
            if name == "description" and isinstance(part, str)
            else self._with_defused_descriptions(part)
            for name, part in value.items()
        }
        return changed if any(changed[name] is not value[name] for name in value) else value

    def _defused_text(self, text: str) -> str:
        if self._in_text is None:
            return text
        changed = self._in_text.sub(self._joined, text)
        return text if changed == text else changed

    def _joined(self, match: re.Match[str]) -> str:
        text, start = match.string, match.start()
        lengths = self._lengths[text[start : start + 2]]
        is_token = any(text[start : start + length] in self._tokens for length in lengths)
        return match[0] + _WORD_JOINER if is_token else match[0]


@lru_cache(maxsize=16)
def control_tokens(tokens: tuple[str, ...]) -> ControlTokens:
    """Those of an engine's `EngineSpec.control_tokens`."""
    return ControlTokens(tokens)


def _beginnings(pairs: Iterable[str]) -> re.Pattern[str] | None:
    """Finds a token's first character, before its second; None where there are no tokens."""
    seconds: dict[str, str] = {}
    for pair in pairs:
        first, second = pair[0], pair[1]
        seconds[first] = seconds.get(first, "") + second
    choices = [f"{re.escape(first)}(?=[{re.escape(next_)}])" for first, next_ in seconds.items()]
    return re.compile("|".join(choices)) if choices else None


def _written_beginnings(pairs: Iterable[str]) -> Iterable[re.Pattern[bytes]]:
    """Find where a token might begin in JSON, as it is or by escapes.

    One for each first byte, since by a pattern that begins with a byte a picture of many megabytes
    is searched in no time.
    """
    seconds: dict[bytes, set[bytes]] = {}
    escapes: set[str] = set()
    for pair in pairs:
        written, first = pair.encode("utf-8", "surrogatepass"), pair[0]
        seconds.setdefault(written[:1], {b"\\"}).add(written[1:2])
        escapes |= {f"u{unit:04x}" for unit in _units(first)} | ({first} & set('"\\/'))
    for byte, following in seconds.items():
        yield re.compile(re.escape(byte) + b"[" + re.escape(b"".join(sorted(following))) + b"]")
    if escapes:
        choices = "|".join(re.escape(escape) for escape in sorted(escapes))
        yield re.compile(rf"\\(?=(?i:{choices}))".encode())


def _units(character: str) -> list[int]:
    """As JSON escapes it: in UTF-16."""
    encoded = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(encoded[at : at + 2]) for at in range(0, len(encoded), 2)]
