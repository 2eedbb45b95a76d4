"""What a recorded session with a server tells: what was asked, what was answered, what the server said as it failed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

__all__ = ["Answer", "Session", "last_words", "place", "session_of"]

_LONGEST_LINE = 1 << 20
# 42    1796040939.371016 write(2<pipe:[543143]>, "TypeError: x is undefined\n    at ...", 45) = 45 <0.000020>
_SAID = re.compile(rb'^(\d++) ++\S++ write\(2(?:<[^>"]*+>)?+, "((?:[^"\\]|\\.)*+)"')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}
# TypeError: x   Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod'   pkg.errors.ConfigException: no token
_ERROR = re.compile(
    r"(?:(?<![\w.])[\w.]{0,80}?(?:Error|Exception)(?![\w.(])|\b(?:error|fatal|panic):)[^\n]*+", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a server.

    Attributes:
        line: the transcript's line.
        failed: it is a protocol error, or a tool's result that says so.
        tool: the tool that was called, None for other methods.
        error: what a protocol error says.
    """

    line: int
    failed: bool
    tool: str | None = None
    error: str = ""


@dataclass(slots=True)
class Session:
    """One transcript.

    Attributes:
        asked: requests of the recorder, by method.
        answers: answers to them, by method.
        tools: names of the tools that were listed, each once.
        lines: messages in all.
    """

    asked: dict[str, int] = field(default_factory=dict)
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    tools: list[str] = field(default_factory=list)
    lines: int = 0

    def good(self, method: str) -> int:
        """Return how many answers to a method were no errors."""
        return sum(not one.failed for one in self.answers.get(method, []))


def session_of(bundle: Path) -> Session:
    """Read the transcript of a bundle; a bundle without one is an empty session."""
    session = Session()
    methods: dict[str, tuple[str, str | None]] = {}
    for number, direction, message in _messages(bundle):
        session.lines = number
        identity = json.dumps(message.get("id"))
        method = message.get("method")
        if direction == "c2s" and isinstance(method, str) and "id" in message:
            params = message.get("params")
            tool = params.get("name") if method == "tools/call" and isinstance(params, dict) else None
            methods[identity] = (method, tool if isinstance(tool, str) else None)
            session.asked[method] = session.asked.get(method, 0) + 1
        elif direction == "s2c" and "method" not in message and identity in methods:
            method, tool = methods.pop(identity)
            result = message.get("result")
            failed = "error" in message or (isinstance(result, dict) and result.get("isError") is True)
            error = message.get("error")
            said = str(error.get("message", "")) if isinstance(error, dict) else ""
            session.answers.setdefault(method, []).append(Answer(number, failed, tool, said))
            if method == "tools/list" and isinstance(result, dict) and isinstance(result.get("tools"), list):
                named = [one.get("name") for one in result["tools"] if isinstance(one, dict)]
                names = [name for name in named if isinstance(name, str)]
                # Thorough sessions list twice, to see what changes; a tool is one tool all the same.
                session.tools = list(dict.fromkeys([*session.tools, *names]))
    return session


def last_words(bundle: Path, beside: re.Pattern[str] | None = None) -> tuple[str, int] | None:
    """Return what a server wrote to standard error that looks most like the reason of its end, and the log's line.

    The last line that names an error counts, else the last line of all. Only strace's log has it.

    Args:
        bundle: the recording.
        beside: what is written with this in it is passed over.
    """
    path = _evidence(bundle, "strace.log")
    if path is None:
        return None
    found: tuple[str, int] | None = None
    named = False
    for number, line in enumerate(_lines(path), 1):
        match = _SAID.match(line)
        if match is None:
            continue
        text = _unescaped(match[2].decode("ascii", "replace"))
        if beside is not None and beside.search(text) is not None:
            continue
        error = _ERROR.search(text)
        rows = [row.strip() for row in text.splitlines() if row.strip()]
        if error is not None:
            found, named = (error[0].strip(), number), True
        elif rows and not named:
            found = (rows[-1], number)
    return found


def place(bundle: Path, name: str, line: int) -> str:
    """Return a place in one evidence file of a bundle as it is written everywhere: ``open/mcp.jsonl.zst:30``."""
    path = _evidence(bundle, name)
    return f"{bundle.name}/{name if path is None else path.name}:{line}"


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        octal, hexadecimal, other = match.groups()
        if other is not None:
            return _PLAIN.get(other, str(other))
        return chr(int(octal, 8) & 0xFF if octal else int(hexadecimal, 16))

    return _ESCAPE.sub(one, text).encode("latin-1", "replace").decode("utf-8", "replace")


def _evidence(bundle: Path, name: str) -> Path | None:
    return next((path for path in (bundle / name, bundle / f"{name}.zst") if path.exists()), None)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as raw:
        if path.suffix != ".zst":
            yield from raw
            return
        rest = b""
        with zstandard.ZstdDecompressor().stream_reader(raw) as stream:
            while part := stream.read(1 << 20):
                *whole, rest = (rest + part).split(b"\n")
                yield from whole
                if len(rest) > _LONGEST_LINE:
                    rest = rest[:_LONGEST_LINE]
        if rest:
            yield rest


def _messages(bundle: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    path = _evidence(bundle, "mcp.jsonl")
    if path is None:
        return
    for number, line in enumerate(_lines(path), 1):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("msg"), dict):
            yield number, str(entry.get("dir")), entry["msg"]
