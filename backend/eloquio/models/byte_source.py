"""A file's bytes as a header's reader wants them: bounded, buffered, with errors that say where."""

import re
from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO, NoReturn

from eloquio.errors import ModelFileInvalid, ModelFileTruncated

LENGTH = Struct("<Q")
MAX_STRING_BYTES = 1 << 31
_WINDOW_BYTES = 1 << 20
_MAX_NAME_BYTES = 65_535
# Far above any real vocabulary with its merges; it bounds the time and memory a header can cost.
_MAX_EFFORT = 4_000_000
# Control characters, line separators, marks that turn the direction of writing, lone surrogates.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class ByteSource:
    """A position in the file with a window of bytes around it."""

    def __init__(self, file: BinaryIO, size: int, name: str) -> None:
        self.size = size
        self.name = name
        self.position = 0
        self._file = file
        self._window = b""
        self._start = 0
        self._effort = 0

    def take(self, count: int) -> bytes:
        at = self._reach(count)
        self.position += count
        return self._window[at : at + count]

    def skip(self, count: int) -> None:
        self.position += count
        if self.position > self.size:
            self.truncated(self.position)

    def go_to(self, position: int) -> None:
        """Anywhere, backwards too: what was read lies only around the position it was read at."""
        self.position = self._start = position
        self._window = b""

    def number(self, form: Struct) -> int:
        at = self._reach(form.size)
        self.position += form.size
        return int(form.unpack_from(self._window, at)[0])

    def short_string(self) -> str:
        """A key or a tensor's name."""
        length = self.number(LENGTH)
        if length > _MAX_NAME_BYTES:
            self.invalid(f"a name of {length} bytes stands in its header")
        return self.take(length).decode("utf-8", "replace")

    def skip_strings(self, count: int) -> None:
        """Hop from length to length: the only loop here that runs once per vocabulary entry."""
        self.spend(count)
        unpack_from = LENGTH.unpack_from
        while count:
            at = self._reach(LENGTH.size)
            window = self._window
            last = len(window) - LENGTH.size
            while count and at <= last:
                at += 8 + unpack_from(window, at)[0]
                count -= 1
            self.position = self._start + at
            if self.position > self.size + MAX_STRING_BYTES:
                self.invalid("a string in its header is absurdly long")
            if self.position > self.size:
                self.truncated(self.position)

    def strings(self, count: int) -> Iterator[bytes]:
        """The strings that `skip_strings` would hop over."""
        self.spend(count)
        unpack_from = LENGTH.unpack_from
        while count:
            at = self._reach(LENGTH.size)
            window = self._window
            while count:
                begin = at + LENGTH.size
                end = begin + unpack_from(window, at)[0] if begin <= len(window) else begin
                if end > len(window):
                    break
                yield window[begin:end]
                at = end
                count -= 1
            self.position = self._start + at
            if count:
                yield self._long_string()
                count -= 1

    def _long_string(self) -> bytes:
        """The next string, wherever the window ends; of one that is no name, nothing."""
        length = self.number(LENGTH)
        if length > MAX_STRING_BYTES:
            self.invalid("a string in its header is absurdly long")
        if length > _MAX_NAME_BYTES:
            self.skip(length)
            return b""
        return self.take(length)

    def spend(self, effort: int) -> None:
        self._effort += effort
        if self._effort > _MAX_EFFORT:
            self.invalid("its header is absurdly large")

    def truncated(self, needed: int) -> NoReturn:
        raise ModelFileTruncated(
            f"{self.name} was cut: it has {self.size} bytes, but needs at least {needed}."
        )

    def invalid(self, reason: str) -> NoReturn:
        raise ModelFileInvalid(f"{self.name} is not a valid GGUF file: {reason}.")

    def _reach(self, count: int) -> int:
        """Where in the window the next `count` bytes begin; reads on when they aren't in it."""
        at = self.position - self._start
        if at + count <= len(self._window):
            return at
        if self.position + count > self.size:
            self.truncated(self.position + count)
        self._file.seek(self.position)
        self._start = self.position
        self._window = self._file.read(max(count, _WINDOW_BYTES))
        if len(self._window) < count:  # it shrank while it was read
            self.truncated(self.position + count)
        return 0


def printable(name: str) -> str:
    """`name` as valid Unicode without control characters, as it may stand in an id or a text."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", name)


def shown_name(name: str) -> str:
    """`printable`, and not too long to be read."""
    text = printable(name)
    return text if len(text) <= 120 else f"{text[:60]}…{text[-59:]}"


def looks_like(start: bytes) -> str:
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, which only names the real file"
    if text.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        return "a web page"
    if start.startswith((b"lmgg", b"fmgg", b"tjgg", b"algg")):
        return "a model in an older format than GGUF"
    if start[8:10] == b'{"':
        return "a safetensors file"
    if start.startswith(b"PK\x03\x04"):
        return "a zip archive or a PyTorch checkpoint"
    if not start.strip(b"\x00"):
        return "a download that has only begun: it starts with zeros"
    # A cut may split the last character.
    decoded = start.decode("utf-8", "ignore")
    is_text = len(decoded.encode()) >= len(start) - 3 and all(
        character.isprintable() or character in "\t\r\n\f" for character in decoded
    )
    return "a text file" if is_text else "some other kind of binary file"
