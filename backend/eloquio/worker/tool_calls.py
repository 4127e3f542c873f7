"""Calls of tools, told apart from what a model says."""
# ruff: noqa: RUF001 (the marks of DeepSeek are written with full-width bars)

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eloquio.worker.call_bodies import Body, body_of
from eloquio.worker.call_texts import Schemas
from eloquio.worker.pieces import Call, Content, NotACall, Piece
from eloquio.worker.search import Search


@dataclass(frozen=True)
class _Opener:
    """`mark` begins a call in a model whose chat template has one of the marks of `shown_by`."""

    mark: str
    closers: tuple[str, ...] = ()
    shown_by: tuple[str, ...] = ()
    is_part: bool = False
    """The mark says what the call is, and is read with it."""


_DEEPSEEK_ENDS = ("```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>")
_KIMI_ENDS = ("<|tool_call_end|>", "<|tool_calls_section_end|>")
_KIMI_MARKS = ("<|tool_calls_section_begin|>", "<|im_middle|>")
_OPENERS = (
    _Opener("<tool_call>", ("</tool_call>",)),  # Hermes, Qwen, GLM, Granite 4 and many others
    _Opener("<function=", ("</tool_call>", "</seed:tool_call>"), is_part=True),  # Qwen3-Coder
    _Opener("<seed:tool_call>", ("</seed:tool_call>",)),
    _Opener("<minimax:tool_call>", ("</minimax:tool_call>",)),
    _Opener('<invoke name="', ("</minimax:tool_call>",), is_part=True),
    _Opener("<｜DSML｜function_calls>", ("</｜DSML｜function_calls>",), ("｜DSML｜",)),
    _Opener('<｜DSML｜invoke name="', shown_by=("｜DSML｜",), is_part=True),
    _Opener("<|tool_call|>", ("<|/tool_call|>",), ("<|tool_call|>", "<|/tool|>")),  # Phi-4, Granite
    _Opener("functools[", shown_by=("<|/tool|>",), is_part=True),  # Phi-4
    _Opener("<|tool_call>", ("<tool_call|>",)),  # Gemma 4
    _Opener("<start_function_call>", ("<end_function_call>",)),  # FunctionGemma
    _Opener("<｜tool▁calls▁begin｜>", _DEEPSEEK_ENDS),
    _Opener("<｜tool▁call▁begin｜>", _DEEPSEEK_ENDS),
    _Opener("<|tool_calls_section_begin|>", _KIMI_ENDS, _KIMI_MARKS),
    _Opener("<|tool_call_begin|>", _KIMI_ENDS, _KIMI_MARKS),
    _Opener("[TOOL_CALLS]", shown_by=("[TOOL_CALLS]", "[AVAILABLE_TOOLS]")),  # Mistral
    _Opener("<|tool_call_start|>", ("<|tool_call_end|>",), ("<|tool_list_start|>",)),  # LFM2
    _Opener("<|START_ACTION|>", ("<|END_ACTION|>",)),  # Cohere
    _Opener("<function_calls>", ("</function_calls>",)),  # OLMo
    _Opener("<tool_calls>", ("</tool_calls>", "```")),  # Hunyuan
    _Opener("<|python_tag|>", ("<|eom_id|>",)),  # Llama 3
    _Opener("<|python_start|>", ("<|python_end|>",)),  # Llama 4
    _Opener("```tool_code", ("```",), ("tool_code",)),  # Gemma
)
# A model with none but these may call without any mark.
_OPTIONAL = frozenset({"<|python_tag|>", "<|python_start|>", "```tool_code"})
_HERMES = _OPENERS[:1]

_JSON_EXAMPLE = re.compile(r'\{\s*\\?"name\\?":.*?\\?"(?:parameters|arguments)\\?":', re.DOTALL)
_PYTHON_EXAMPLE = re.compile(r"\[\w+\(\w+=")
# An object with another key in front, and a list of anything else, are no call for sure.
_NO_BARE_CALL = re.compile(
    r'(?:\[\s*)?\{\s*(?:"(?!(?:name|type|function|id|parameters|arguments)")[^"]*"|[^"\s])'
    r"|\[\s*(?:[^\s{\w]|[\w.]+\s*[^\w.\s(]|[\w.]+\s+\w)"
)


@dataclass(frozen=True)
class CallForm:
    """How a model calls tools."""

    openers: tuple[_Opener, ...] = _HERMES
    is_bare_json: bool = False
    """An answer that is such an object, and names a tool, is a call."""
    is_bare_python: bool = False

    @property
    def marks(self) -> frozenset[str]:
        """The texts that have to stay in the answer for it to be read, special tokens or not."""
        marks = {opener.mark for opener in self.openers} | _SEPARATORS
        return frozenset(marks.union(*(opener.closers for opener in self.openers)))


_SEPARATORS = frozenset(
    {"[ARGS]", "[CALL_ID]", "<｜tool▁sep｜>", "<|tool_call_argument_begin|>", '<|"|>', "<escape>"}
    | {"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "</function>"}
    | {"<parameter=", "</parameter>", "</invoke>", "｜DSML｜"}
)


def call_form(template: str) -> CallForm:
    """By the chat template's own words; Hermes's, which most models know, where it has none."""
    openers = tuple(
        opener
        for opener in _OPENERS
        if any(mark in template for mark in (opener.shown_by or (opener.mark,)))
    )
    is_bare = all(opener.mark in _OPTIONAL for opener in openers)
    return CallForm(
        openers or _HERMES,
        is_bare_json=is_bare and _JSON_EXAMPLE.search(template) is not None,
        is_bare_python=is_bare and _PYTHON_EXAMPLE.search(template) is not None,
    )


def schemas_of(tools: Iterable[Mapping[str, Any]]) -> Schemas:
    """By name, the properties that the tools of a request declare."""
    functions = [tool.get("function", tool) for tool in tools]
    return {
        function["name"]: _properties(function.get("parameters"))
        for function in functions
        if isinstance(function, Mapping) and isinstance(function.get("name"), str)
    }


def _properties(parameters: Any) -> Mapping[str, Any]:
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


class ToolCallParser:
    """Splits a text that comes in pieces into what is said and whole calls.

    What begins as a call and turns out to be none is content, to the letter.
    """

    def __init__(self, form: CallForm, tools: Sequence[Mapping[str, Any]]) -> None:
        self._form = form
        self._schemas = schemas_of(tools)
        self._openers = {opener.mark: opener for opener in form.openers}
        self._closers = {closer for opener in form.openers for closer in opener.closers}
        self._search = Search(self._openers)
        is_bare = form.is_bare_json or form.is_bare_python
        self._state: Literal["start", "content", "body", "after"] = (
            "start" if is_bare else "content"
        )
        self._text = ""
        """What came and has not been read yet."""
        self._taken = ""
        """What was read of the call so far, and the white space before it."""
        self._given_up = 0
        """How much of `_taken` is content for sure, where the call is none."""
        self._body: Body | None = None
        self._is_bare = False
        self._may_go_on = False
        """No mark has ended the calls, so that one may follow without another mark."""
        self._called = 0

    def feed(self, text: str) -> list[Piece]:
        self._text += text
        pieces: list[Piece] = []
        while self._step(pieces):
            pass
        return pieces

    def end(self) -> list[Piece]:
        """What was held back: a call that isn't whole is content."""
        rest = self._taken + self._text + self._search.end()
        self._taken = self._text = ""
        if self._state == "after" and not rest.strip():
            return []
        return [Content(rest)] if rest else []

    def _step(self, pieces: list[Piece]) -> bool:
        """Whether something was read, so that more may be."""
        match self._state:
            case "start":
                return self._step_at_start()
            case "content":
                return self._step_in_content(pieces)
            case "body":
                return self._step_in_body(pieces)
            case "after":
                return self._step_after()

    def _step_at_start(self) -> bool:
        text = self._text.lstrip()
        if not text:
            return False
        if text[0] == "[" or (text[0] == "{" and self._form.is_bare_json):
            self._begin_body(self._text[: -len(text)], text, given_up=1)
            self._is_bare = True
        else:
            self._state = "content"
        return True

    def _step_in_content(self, pieces: list[Piece]) -> bool:
        """White space is held back: before a call there is none."""
        told, mark, rest = self._search.feed(self._text)
        told = self._taken + told
        said = told.rstrip()
        if said:
            pieces.append(Content(said))
        self._taken, self._text = told[len(said) :], rest
        if mark is None:
            return False
        self._open(mark, rest)
        return True

    def _open(self, mark: str, rest: str) -> None:
        space = self._taken
        if self._openers[mark].is_part:
            self._begin_body(space, mark + rest, given_up=len(mark))
        else:
            self._begin_body(space + mark, rest, given_up=0)
        self._is_bare = False

    def _begin_body(self, taken: str, text: str, *, given_up: int) -> None:
        self._state, self._body = "body", None
        self._taken, self._text = taken, text
        self._given_up = len(taken) + given_up

    def _step_in_body(self, pieces: list[Piece]) -> bool:
        try:
            if self._body is None:
                return self._recognize()
            end = self._body.end(self._text)
            if end is None:
                if self._is_bare and _NO_BARE_CALL.match(self._text):
                    raise NotACall
                return False
            pieces += self._calls(self._body.read(self._text[:end]))
        except NotACall:
            whole = self._taken + self._text
            pieces.append(Content(whole[: self._given_up]))
            self._state, self._taken, self._text = "content", "", whole[self._given_up :]
            return True
        self._state, self._may_go_on = "after", True
        self._taken, self._text = "", self._text[end:]
        return True

    def _recognize(self) -> bool:
        """White space and further marks before the call are passed over."""
        text = self._text.lstrip()
        self._taken += self._text[: len(self._text) - len(text)]
        self._text = text
        wrappers = [mark for mark, opener in self._openers.items() if not opener.is_part]
        for mark in wrappers:
            if text.startswith(mark):
                self._taken += mark
                self._text = text[len(mark) :]
                return True
        if not text or any(mark.startswith(text) for mark in wrappers):
            return False
        self._body = body_of(text, self._schemas)
        return self._body is not None

    def _calls(self, found: Sequence[Any]) -> list[Call]:
        if self._is_bare and any(call.name not in self._schemas for call in found):
            raise NotACall
        calls = [call.numbered(self._called + at) for at, call in enumerate(found)]
        self._called += len(calls)
        return calls

    def _step_after(self) -> bool:
        text = self._text.lstrip()
        if not text:
            return False
        marks = [*self._closers, *self._openers]
        if mark := next((mark for mark in marks if text.startswith(mark)), None):
            rest = text[len(mark) :]
            if mark in self._openers:
                self._open(mark, rest)
            else:
                self._text, self._may_go_on = rest, False
            return True
        if any(mark.startswith(text) for mark in marks):
            return False
        if self._may_go_on and text[0] in ",;":
            self._text = text[1:]
        elif self._may_go_on and (not self._is_bare or text[0] in "{["):
            self._begin_body(self._text[: -len(text)], text, given_up=1)
        else:
            self._state = "content"
        return True
