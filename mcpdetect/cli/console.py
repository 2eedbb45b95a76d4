"""Writing to people: style of a stream, output to a file or stdout, one block for an error."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO

import click

from mcpdetect.errors import McpDetectError
from mcpdetect.model.text import shown
from mcpdetect.report.layout import Style
from mcpdetect.report.outcome import EXIT_USAGE

__all__ = [
    "OutputError",
    "binary_stdout",
    "error_text",
    "fail",
    "flush_quietly",
    "require_writable",
    "style_of",
    "tell",
    "write_lines",
    "write_output",
]

_PIPE_WIDTH = 100
_CHUNK = 256
_NARROWEST, _WIDEST = 40, 200


class OutputError(click.ClickException):
    """The output cannot be written."""

    exit_code = EXIT_USAGE


def style_of(stream: TextIO | None, color: bool | None = None) -> Style:
    """Return how to dress text for a stream.

    Args:
        stream: stdout or stderr, None for a file of ours (UTF-8, no colour unless asked for).
        color: the user's word; None decides by the stream, NO_COLOR (no-color.org) and TERM.
    """
    if stream is None:
        return Style(width=_columns(_PIPE_WIDTH), color=bool(color))
    if color is None:
        wanted = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    else:
        wanted = color
    try:
        "●○×…·".encode(stream.encoding or "ascii")
        plain = False
    except (UnicodeEncodeError, LookupError):
        plain = True
    default = shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns if stream.isatty() else _PIPE_WIDTH
    return Style(width=min(max(_columns(default), _NARROWEST), _WIDEST), color=wanted, plain=plain)


def _columns(default: int) -> int:
    text = os.environ.get("COLUMNS", "")
    return int(text) if text.isdecimal() and 0 < int(text) < 10_000 else default


def write_output(text: str | bytes, output: Path | None) -> None:
    """Write a whole document to a file or to stdout.

    A reader that went away (``| head``) ends the output in silence.

    Raises:
        OutputError: the disk is full, the file may not be written, stdout is closed.
    """
    if output is not None:
        try:
            output.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise OutputError(f"cannot write {shown(str(output))}: {error.strerror}") from error
        return
    with _standard_output() as stream:
        if isinstance(text, bytes):
            stream.flush()
            stream.buffer.write(text)
            stream.buffer.flush()
        else:
            stream.write(_carried(text, stream))


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout as they come; a reader that went away ends it.

    Raises:
        OutputError: as ``write_output``.
    """
    pending = iter(lines)
    while chunk := "".join(f"{line}\n" for line in islice(pending, _CHUNK)):
        sent = False
        with _standard_output() as stream:
            stream.write(_carried(chunk, stream))
            stream.flush()
            sent = True
        if not sent:
            return


@contextmanager
def binary_stdout() -> Iterator[BinaryIO]:
    """Give stdout for bytes; when its reader goes away the rest of the block is skipped.

    Raises:
        OutputError: as ``write_output``.
    """
    with _standard_output() as stream:
        stream.flush()
        yield stream.buffer


@contextmanager
def _standard_output() -> Iterator[TextIO]:
    stream = sys.stdout
    if stream is None:
        raise OutputError("standard output is closed; name a file with -o")
    try:
        yield stream
        stream.flush()
    except BrokenPipeError:
        _silence(stream)
    except OSError as error:
        _silence(stream)
        raise OutputError(f"cannot write to standard output: {error.strerror}") from error


def _carried(text: str, stream: TextIO) -> str:
    """Return ``text`` with what the stream's encoding cannot carry escaped instead of failing on it."""
    encoding = stream.encoding or "ascii"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def require_writable(output: Path | None) -> None:
    """Raise before long work whose result could not be written.

    Raises:
        OutputError: the folder is missing, or the file is a folder or may not be written.
    """
    if output is None:
        return
    name = shown(str(output))
    if output.is_dir():
        raise OutputError(f"cannot write {name}: it is a folder")
    if not output.parent.is_dir():
        raise OutputError(f"cannot write {name}: the folder {shown(str(output.parent))} does not exist")
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        raise OutputError(f"cannot write {name}: {os.strerror(errno.EACCES)}")


def tell(text: str) -> None:
    """Write a line for people to stderr; a closed stderr is no error."""
    stream = sys.stderr
    if stream is None:
        return
    try:
        stream.write(_carried(f"{text}\n", stream))
        stream.flush()
    except OSError:
        _silence(stream)


def error_text(error: McpDetectError) -> str:
    """Return the block for an error, every part of it harmless to a terminal."""

    def safe(part: str | None) -> str | None:
        return None if part is None else shown(part, 2000)

    return str(
        McpDetectError(
            shown(error.problem, 2000),
            file=safe(error.file),
            place=safe(error.place),
            value=safe(error.value),
            cause=safe(error.cause),
            hint=safe(error.hint),
        )
    )


def fail(error: McpDetectError) -> None:
    """Write the block for an error to stderr."""
    style = style_of(sys.stderr) if sys.stderr is not None else Style()
    tell(f"{style.paint('error:', 'grave')} {style.encode(error_text(error))}")


def flush_quietly() -> None:
    """Flush stdout and stderr so that a reader that went away does not show at exit."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except OSError:
                _silence(stream)


def _silence(stream: TextIO) -> None:
    """Point a broken stream at nothing, so that the interpreter's last flush finds no broken pipe."""
    try:
        descriptor = stream.fileno()
    except OSError:
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
