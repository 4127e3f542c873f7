"""Where a call that comes in pieces ends, found without reading it anew for each piece."""
# ruff: noqa: RUF001 (the marks of DeepSeek are written with full-width bars)

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from eloquio.worker import call_texts
from eloquio.worker.call_texts import Schemas
from eloquio.worker.pieces import NamedArguments, NotACall

Read = Callable[[str], list[NamedArguments]]


class Body(Protocol):
    """A call, or several, from the first character on."""

    def end(self, text: str) -> int | None:
        """Where it ends in `text`, which only grows between the askings; None while it doesn't.

        Raises NotACall where it can't be one any more.
        """
        ...

    def read(self, text: str) -> list[NamedArguments]:
        """The calls of a body that is whole. Raises NotACall."""
        ...


# At a text's end, so much may be the beginning of a token below; the longest has 22 characters.
_MOST_BEGUN = 21
_JSON = re.compile(r'["{}\[\]]|[^\s\w,:.+\-]')
_PYTHON = re.compile(r"[\"'{}\[\]()]|[<`;]")
_GEMMA = re.compile(r'<\|"\|>|<escape>|[{}\[\]]|<tool_call\|>|<end_function_call>')
_IN_QUOTES: Mapping[str, re.Pattern[str]] = {
    '"': re.compile(r'\\.|"', re.DOTALL),
    "'": re.compile(r"\\.|'", re.DOTALL),
    '<|"|>': re.compile(r'<\|"\|>'),
    "<escape>": re.compile(r"<escape>"),
}


class _Brackets:
    """Ends with the bracket that closes the first one; those in strings don't count."""

    def __init__(self, tokens: re.Pattern[str], read: Read, begin: int = 0) -> None:
        """`tokens` finds brackets, quotes, and what can't stand outside of strings."""
        self._tokens = tokens
        self._at = begin
        self._depth = 0
        self._quoted: re.Pattern[str] | None = None
        self.read = read

    def end(self, text: str) -> int | None:
        while match := (self._quoted or self._tokens).search(text, self._at):
            self._at = match.end()
            if self._quoted is not None:
                if not match[0].startswith("\\"):
                    self._quoted = None
            elif self._passes_last_bracket(match[0]):
                return self._at
        self._at = max(self._at, len(text) - _MOST_BEGUN)
        return None

    def _passes_last_bracket(self, token: str) -> bool:
        if token in _IN_QUOTES:
            self._quoted = _IN_QUOTES[token]
            return False
        if token in "([{":
            self._depth += 1
            return False
        if token not in ")]}":
            raise NotACall
        self._depth -= 1
        return self._depth <= 0


class _Tags:
    """Ends with an end tag; what stands in a value doesn't count."""

    def __init__(self, value_begin: str, value_end: str, end: str, read: Read) -> None:
        self._outside = re.compile("|".join(map(re.escape, {value_begin, end, "</tool_call>"})))
        self._value_begin = value_begin
        self._value_end = value_end
        self._end = end
        self._at = 0
        self._is_in_value = False
        self.read = read

    def end(self, text: str) -> int | None:
        while True:
            if self._is_in_value:
                found = text.find(self._value_end, self._at)
                token = self._value_end if found >= 0 else None
            else:
                match = self._outside.search(text, self._at)
                found, token = (match.start(), match[0]) if match else (-1, None)
            if token is None:
                self._at = max(self._at, len(text) - _MOST_BEGUN)
                return None
            self._at = found + len(token)
            if token == self._end and not self._is_in_value:
                return self._at
            if not self._is_in_value and token != self._value_begin:
                raise NotACall
            self._is_in_value = not self._is_in_value


_TAG_BEGINNINGS = ("<function=", '<invoke name="', '<｜DSML｜invoke name="', "functools[", "call:")
_DECISIVE = re.compile(r"\{|\(|<arg_key>|</tool_call>")
# Two words beside each other are no name of a call.
_WORDS = re.compile(r"\w[\w.\-]*[ \t]+\w")
_LONGEST_NAME = 256


def body_of(text: str, schemas: Schemas) -> Body | None:
    """What the text begins, by its first characters; None while they don't tell.

    `text` doesn't begin with white space. Raises NotACall.
    """
    if text.startswith("{"):
        return _Brackets(_JSON, call_texts.json_calls)
    if text.startswith("["):
        return _list_of(text)
    for beginning in _TAG_BEGINNINGS:
        if text.startswith(beginning):
            return _tagged(beginning, schemas)
        if beginning.startswith(text):
            return None
    return _named(text, schemas)


def _list_of(text: str) -> Body | None:
    inside = text[1:].lstrip()
    if not inside:
        return None
    if inside[0].isalpha() or inside[0] == "_":
        return _Brackets(_PYTHON, call_texts.python_calls)
    return _Brackets(_JSON, call_texts.json_calls)


def _tagged(beginning: str, schemas: Schemas) -> Body:
    def functions(text: str) -> list[NamedArguments]:
        return call_texts.function_tags(text, schemas)

    def invoked(text: str) -> list[NamedArguments]:
        return call_texts.invoke_tags(text, schemas)

    match beginning:
        case "<function=":
            return _Tags("<parameter=", "</parameter>", "</function>", functions)
        case '<invoke name="':
            return _Tags("<parameter name=", "</parameter>", "</invoke>", invoked)
        case "functools[":
            prefix = len("functools")
            return _Brackets(_JSON, lambda text: call_texts.json_calls(text[prefix:]), prefix)
        case "call:":
            return _Brackets(_GEMMA, call_texts.gemma_call)
        case _:
            mark = "｜DSML｜"
            return _Tags(
                f"<{mark}parameter name=", f"</{mark}parameter>", f"</{mark}invoke>", invoked
            )


def _named(text: str, schemas: Schemas) -> Body | None:
    """A call that begins with its name; what follows tells which of the ways it is."""
    match = _DECISIVE.search(text)
    header = text[: match.start()] if match else text
    if not header[:1].isalnum() and header[:1] != "_":
        raise NotACall
    if _WORDS.match(header) or len(header) > _LONGEST_NAME:
        raise NotACall
    if match is None:
        return None
    match match[0]:
        case "{" if call_texts.is_name_of_json(header):
            return _Brackets(_JSON, call_texts.named_json, len(header))
        case "(":
            return _Brackets(_PYTHON, call_texts.python_calls, len(header))
        case "<arg_key>" | "</tool_call>":
            return _Tags(
                "<arg_value>",
                "</arg_value>",
                "</tool_call>",
                lambda text: call_texts.keyed_tags(text, schemas),
            )
        case _:
            raise NotACall
