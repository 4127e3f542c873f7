"""gpt-oss's way to answer: messages in channels, one after the other."""

import re
from collections.abc import Collection

from eloquio.worker.pieces import Content, NamedArguments, NotACall, Piece, Reasoning, parsed_json
from eloquio.worker.reasoning import Harmony
from eloquio.worker.search import Search

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
_ENDS = ("<|end|>", "<|call|>", "<|return|>")
MARKS = (START, CHANNEL, MESSAGE, CONSTRAIN, *_ENDS)

_IN_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_MAY_BE_A_HEADER = re.compile(r"\s*(t(o(=\S*\s*\w*)?)?)?")


class HarmonyParser:
    """The channel `analysis` is reasoning, a message to a tool is a call, all else is content."""

    def __init__(self, form: Harmony, tools: Collection[str] = ()) -> None:
        """`tools` are the names of those that may be called; without any nothing is a call."""
        self._tools = frozenset(tools)
        self._search = Search(MARKS)
        self._header: str | None = ""
        """Of the message that is to come; None inside a message."""
        self._is_begun = True
        """No message was started here, so the text may do without a header."""
        self._channel = "final"
        self._recipient: str | None = None
        self._arguments = ""
        self._called = 0
        self._spoken: dict[type[Piece], bool] = {}
        self._needs_break = False
        if MESSAGE in form.begun or CHANNEL in form.begun:
            self.feed(START + form.begun)
            self._search.end()
            self._spoken.clear()

    def feed(self, text: str) -> list[Piece]:
        pieces: list[Piece] = []
        while text:
            told, mark, text = self._search.feed(text)
            self._read(told, pieces)
            if mark is not None:
                self._pass(mark, pieces)
        return pieces

    def end(self) -> list[Piece]:
        """The rest. A call whose end mark was taken as the answer's end is whole."""
        pieces: list[Piece] = []
        self._read(self._search.end(), pieces)
        if self._header is None:
            self._finish(pieces)
        elif self._is_begun and CHANNEL not in self._header and self._header.strip():
            self._say(Content, self._header, pieces)
        return pieces

    def _read(self, text: str, pieces: list[Piece]) -> None:
        if self._header is not None:
            self._header += text
            if self._is_begun and CHANNEL not in self._header:
                self._begin_without_header(pieces)
        elif self._recipient is not None:
            self._arguments += text
        else:
            self._say(Reasoning if self._channel == "analysis" else Content, text, pieces)

    def _begin_without_header(self, pieces: list[Piece]) -> None:
        text = self._header or ""
        if not _MAY_BE_A_HEADER.fullmatch(text):
            self._header, self._channel, self._is_begun = None, "final", False
            self._say(Content, text, pieces)

    def _pass(self, mark: str, pieces: list[Piece]) -> None:
        if self._header is not None:
            if mark == MESSAGE:
                self._begin()
            elif mark == START or mark in _ENDS:
                self._header, self._is_begun = "", mark != START
            else:
                self._header += mark
        elif mark in _ENDS or mark in (START, CHANNEL):
            self._finish(pieces)
            self._header, self._is_begun = (mark if mark == CHANNEL else ""), mark in _ENDS
        else:
            self._read(mark, pieces)

    def _begin(self) -> None:
        header = self._header or ""
        channel, recipient = _IN_CHANNEL.search(header), _RECIPIENT.search(header)
        self._channel = channel[1] if channel else "final"
        called = recipient[1] if recipient else None
        is_tool = called is not None and (called.startswith("functions.") or called in self._tools)
        self._recipient = called if is_tool and self._tools else None
        self._header, self._arguments, self._is_begun = None, "", False
        self._needs_break = True

    def _finish(self, pieces: list[Piece]) -> None:
        if self._recipient is None:
            return
        name, self._recipient = self._recipient.removeprefix("functions."), None
        try:
            arguments = parsed_json(self._arguments.strip() or "{}")
            if not isinstance(arguments, dict):
                raise NotACall
            pieces.append(NamedArguments(name, arguments).numbered(self._called))
            self._called += 1
        except NotACall:
            self._say(Content, self._arguments, pieces)

    def _say(self, kind: type[Content] | type[Reasoning], text: str, pieces: list[Piece]) -> None:
        """Two messages of one kind don't run into each other."""
        if not text:
            return
        if self._needs_break and self._spoken.get(kind):
            text = "\n" + text
        self._needs_break, self._spoken[kind] = False, True
        pieces.append(kind(text))
