"""Walking through a JSON text of any layout without holding it: members, elements and lines, one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpdetect.ingest.opener import Stream

__all__ = ["HEAD", "MAX_VALUE", "Broken", "Ended", "Scanner", "TooLong"]

BLOCK = 1 << 17
HEAD = 4096
"""How much is kept of a text that is too long."""
MAX_VALUE = 1 << 24
"""Most bytes of one event, or one member beside the events, that is read; the writer keeps to it too."""

_SPACE = re.compile(rb"[ \t\r\n]*+")
# Everything up to the next bracket that is in no string. A string holds no raw line break (RFC 8259 §7), so a quote
# left open stops the match:  "path": "/a[0]", "argv": [
_TO_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\\n]++|\\[^\n])*+")*+')
# "mcpdetect.trace/1"
_STRING = re.compile(rb'"(?:[^"\\\n]++|\\[^\n])*+"')
# 17, true, null
_SCALAR = re.compile(rb'[^\s,\]}\[{":]++')
_CLOSERS = {ord("{"): ord("}"), ord("["): ord("]")}


class Ended(Exception):
    """The text ends inside a value or before a closing bracket."""


class Broken(Exception):
    """The text is no JSON at the scanner's place; the message says why."""


class TooLong(Exception):
    """A value is longer than allowed and has been skipped. ``head`` is its beginning."""

    def __init__(self, head: bytes) -> None:
        super().__init__("too long")
        self.head = head


class Scanner:
    """A place in a JSON text.

    Attributes:
        line: number of the line (from 1) at which the next unread byte stands.
        unbroken: the line that ``lines`` yielded last has no line break: the text ends in it.
        stream: where the bytes come from.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.line = 1
        self.unbroken = False
        self._data = b""
        self._at = 0
        if self._more() and self._data.startswith(b"\xef\xbb\xbf"):
            self._at = 3

    def close(self) -> None:
        """Close the stream."""
        self.stream.close()

    def _more(self) -> bool:
        """Read at least as much again as is unread, so that looking anew at the unread part stays linear."""
        unread = self._data[self._at :]
        block = self.stream.read(max(BLOCK, len(unread)))
        self._data = unread + block
        self._at = 0
        return bool(block)

    def _take_to(self, end: int) -> bytes:
        part = self._data[self._at : end]
        self.line += part.count(b"\n")
        self._at = end
        return part

    def peek(self) -> bytes:
        """Skip white space; return the next byte without taking it, ``b""`` at the end."""
        while True:
            space = _SPACE.match(self._data, self._at)
            if space:
                self._take_to(space.end())
            if self._at < len(self._data):
                return self._data[self._at : self._at + 1]
            if not self._more():
                return b""

    def take(self, *expected: bytes) -> bytes:
        """Skip white space and take the next byte.

        Raises:
            Ended: there is none.
            Broken: it is none of ``expected``.
        """
        found = self.peek()
        if not found:
            raise Ended
        if found not in expected:
            raise Broken(f"{_quoted(found)} where {' or '.join(map(_quoted, expected))} belongs")
        self._at += 1
        return found

    def follows(self, text: bytes) -> bool:
        """Return whether exactly ``text`` comes next; nothing is taken, white space not skipped."""
        while len(self._data) - self._at < len(text):
            if not self._more():
                return False
        return self._data.startswith(text, self._at)

    def value(self, limit: int = MAX_VALUE) -> bytes:
        """Take the next value and return its text; only its extent is checked, not what is inside.

        Raises:
            Ended: the text ends within it.
            Broken: quotes or brackets do not match, or no value begins here.
            TooLong: it has more than ``limit`` bytes; the scanner stands after it.
        """
        first = self.peek()
        if not first:
            raise Ended
        if first not in b"{[":
            return self._simple(_STRING if first == b'"' else _SCALAR)
        open_brackets = bytearray()
        head = b""
        done = 0  # bytes of the unread part that are understood
        while True:
            inside = _TO_BRACKET.match(self._data, self._at + done)
            end = inside.end() if inside else self._at
            if end == len(self._data) or self._data[end] == ord('"'):
                done = end - self._at
                if self._data.find(b"\n", end) >= 0:
                    self._take_to(end)
                    raise Broken("a string that is not closed on its line")
                if len(self._data) - end > MAX_VALUE:
                    raise Broken(f"a string of more than {MAX_VALUE} bytes")
                if done > limit:
                    head = head or self._data[self._at : self._at + HEAD]
                    self._take_to(end)
                    done = 0
                if not self._more():
                    self._take_to(len(self._data))
                    raise Ended
                continue
            bracket = self._data[end]
            if bracket in _CLOSERS:
                open_brackets.append(_CLOSERS[bracket])
            elif open_brackets.pop() != bracket:
                self._take_to(end)
                raise Broken(f"{_quoted(bytes([bracket]))} closes what it did not open")
            done = end + 1 - self._at
            if not open_brackets:
                text = self._take_to(end + 1)
                if head or len(text) > limit:
                    raise TooLong(head or text[:HEAD])
                return text

    def _simple(self, shape: re.Pattern[bytes]) -> bytes:
        """Take a string or a scalar."""
        while True:
            found = shape.match(self._data, self._at)
            if found and found.end() < len(self._data):
                return self._take_to(found.end())
            if not found and (shape is _SCALAR or self._data.find(b"\n", self._at) >= 0):
                raise Broken(f"{_quoted(self._data[self._at : self._at + 1])} begins no value")
            if len(self._data) - self._at > MAX_VALUE:
                raise Broken(f"a value of more than {MAX_VALUE} bytes")
            if not self._more():
                value = self._take_to(len(self._data))
                if found:
                    return value
                raise Ended

    def lines(self) -> Iterator[bytes]:
        """Yield the remaining lines without their line break; ``line`` is the number of the one just yielded.

        A line longer than ``MAX_VALUE`` comes as its first ``HEAD`` bytes and a NUL, which no JSON text can hold. A
        last line without a line break comes as it is.
        """
        while True:
            data, at = self._data, self._at
            while (end := data.find(b"\n", at)) >= 0:
                line = data[at:end]
                self._at = at = end + 1
                yield line
                self.line += 1
            if len(data) - at > MAX_VALUE:
                self._skip_line()
                yield data[at : at + HEAD] + b"\0"
                self.line += 1
            elif not self._more():
                if self._data:
                    self.unbroken = True
                    self._at = len(self._data)
                    yield self._data
                return

    def put_back(self, text: bytes) -> None:
        """Let ``text``, the end of the line just yielded by ``lines``, be read again; ``lines`` must not go on."""
        self._data = text + (b"" if self.unbroken else b"\n") + self._data[self._at :]
        self._at = 0

    def _skip_line(self) -> None:
        while (end := self._data.find(b"\n", self._at)) < 0:
            self._at = len(self._data)
            if not self._more():
                return
        self._at = end + 1


def _quoted(text: bytes) -> str:
    return repr(text.decode("latin-1"))
