"""A person's text must not forge a turn: control tokens in it are made texts like any other.

An engine reads the prompt that its template made as one text, in which a message's `<|im_end|>` and
the template's own are the same token.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any

from eloquio.errors import InvalidRequest

# Shows nothing and breaks no line, but what it stands in is no token any more.
_WORD_JOINER = "\N{WORD JOINER}"
# Parts of a message of which no text reaches the prompt, and which are long.
_MEDIA = ("image_url", "input_audio")
# Of a tool's schema, what a model is told and never has to write to the letter.
_ONLY_TOLD = frozenset({"description", "title", "default", "example", "examples", "$comment"})
_OF_NAMES = frozenset({"properties", "$defs", "definitions"})


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
        """The JSON of a chat request in which no text of a prompt holds a control token.

        The same object where none did. What is changed reads the same to a person. InvalidRequest
        where a tool could be called only by writing one.
        """
        if not any(pattern.search(body) for pattern in self._in_json):
            return body
        fields: dict[str, Any] = json.loads(body)
        changed = self.defused_fields(fields)
        return body if changed is fields else json.dumps(changed).encode()

    def defused_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The same for a request that was parsed already."""
        changed = {
            "messages": _each(self._defused_message, fields.get("messages")),
            "tools": _each(self._defused_tool, fields.get("tools")),
            "chat_template_kwargs": self._defused(fields.get("chat_template_kwargs")),
        }
        if all(value is fields.get(name) for name, value in changed.items()):
            return fields
        return fields | {name: value for name, value in changed.items() if name in fields}

    # Messages --------------------------------------------------------------------------------

    def _defused_message(self, message: dict[str, Any]) -> dict[str, Any]:
        """All of it but the role, which was checked: a template may write any of the rest."""
        changed = {
            self._defused_text(name): self._defused_field(name, value)
            for name, value in message.items()
        }
        return _same_object(changed, message)

    def _defused_field(self, name: str, value: Any) -> Any:  # noqa: ANN401
        if name == "role":
            return value
        if name == "content" and isinstance(value, list):
            return self._defused_parts(value)
        return self._defused(value)

    def _defused_parts(self, parts: list[Any]) -> list[Any]:
        """Of a picture, a prompt holds only the place; the texts may stand side by side there."""
        defused: list[Any] = []
        for is_text, some in groupby(parts, key=_is_text):
            group = list(some)
            defused += self._defused_row(group) if is_text else map(self._defused_part, group)
        return _same_list(defused, parts)

    def _defused_part(self, part: Any) -> Any:  # noqa: ANN401
        is_media = isinstance(part, dict) and part.get("type") in _MEDIA
        return part if is_media else self._defused(part)

    def _defused_row(self, row: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Texts, one behind the other: a token may begin in one of them and end in the next."""
        marks = self._marks("".join(part["text"] for part in row))
        begin = 0
        for part in row:
            end = begin + len(part["text"])
            text = _marked(part["text"], [at - begin for at in marks if begin < at <= end])
            rest = {name: value for name, value in part.items() if name != "text"}
            changed = self._defused(rest)
            is_same = changed is rest and text is part["text"]
            yield part if is_same else {**changed, "text": text}
            begin = end

    # Tools -----------------------------------------------------------------------------------

    def _defused_tool(self, value: Any, *, are_names: bool = False) -> Any:  # noqa: ANN401
        """What describes it is made harmless, and the rest has to be.

        `are_names`: what the fields of `value` are called is the tool's own, not JSON Schema's.
        """
        match value:
            case str():
                self._refuse_token(value)
                return value
            case list():
                return _each(self._defused_tool, value)
            case dict():
                for name in value:
                    self._refuse_token(name)
                changed = {
                    name: self._defused(part)
                    if name in _ONLY_TOLD and not are_names
                    else self._defused_tool(part, are_names=name in _OF_NAMES and not are_names)
                    for name, part in value.items()
                }
                return _same_object(changed, value)
            case _:
                return value

    def _refuse_token(self, text: str) -> None:
        if self._marks(text):
            raise InvalidRequest(
                "A name or a value within tools holds a text by which this model's turns are told "
                "apart. Changed, it would be another; as it is, it would forge a turn.",
                param="tools",
                next_step="Give it another name, or put the text into a description.",
            )

    # Any value -------------------------------------------------------------------------------

    def _defused(self, value: Any) -> Any:  # noqa: ANN401
        match value:
            case str():
                return self._defused_text(value)
            case list():
                return _each(self._defused, value)
            case dict():
                changed = {
                    self._defused_text(name): self._defused_arguments(part)
                    if name == "arguments" and isinstance(part, str)
                    else self._defused(part)
                    for name, part in value.items()
                }
                return _same_object(changed, value)
            case _:
                return value

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

    def _defused_text(self, text: str) -> str:
        return _marked(text, self._marks(text))

    def _marks(self, text: str) -> list[int]:
        """Where a token's first character has ended."""
        found = () if self._in_text is None else self._in_text.finditer(text)
        return [match.end() for match in found if self._begins_token(text, match.start())]

    def _begins_token(self, text: str, at: int) -> bool:
        lengths = self._lengths[text[at : at + 2]]
        return any(text[at : at + length] in self._tokens for length in lengths)


@lru_cache(maxsize=16)
def control_tokens(tokens: tuple[str, ...]) -> ControlTokens:
    """Those of an engine's `EngineSpec.control_tokens`."""
    return ControlTokens(tokens)


def _is_text(part: Any) -> bool:  # noqa: ANN401
    return isinstance(part, dict) and isinstance(part.get("text"), str)


def _marked(text: str, marks: Sequence[int]) -> str:
    """With a joiner at each of the marks; the same object where there are none."""
    if not marks:
        return text
    bounds = [0, *marks, len(text)]
    return _WORD_JOINER.join(text[begin:end] for begin, end in pairwise(bounds))


def _each(change: Callable[[Any], Any], values: Any) -> Any:  # noqa: ANN401
    return _same_list([change(value) for value in values], values) if values else values


def _same_list(changed: list[Any], values: list[Any]) -> list[Any]:
    """`values` itself where nothing was changed."""
    return values if all(a is b for a, b in zip(changed, values, strict=True)) else changed


def _same_object(changed: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """The same for an object; two names that a change made one are a change."""
    if len(changed) < len(value):
        return changed
    pairs = zip(changed.items(), value.items(), strict=True)
    return value if all(n is m and a is b for (n, a), (m, b) in pairs) else changed


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
        second = b"[" + re.escape(b"".join(sorted(following))) + b"]"
        # At a text's end, its second character may begin the next text.
        yield re.compile(re.escape(byte) + b"(?:" + second + rb"|\"\s*[,}])")
    if escapes:
        choices = "|".join(re.escape(escape) for escape in sorted(escapes))
        yield re.compile(rf"\\(?=(?i:{choices}))".encode())


def _units(character: str) -> list[int]:
    """As JSON escapes it: in UTF-16."""
    encoded = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(encoded[at : at + 2]) for at in range(0, len(encoded), 2)]
