"""The transcript of a session: one JSON object a line, what was said kept as it was said.

``{"t": epoch seconds, "dir": "c2s" or "s2c", "msg": message}``, the message letter for letter; ``raw`` instead of
``msg`` holds what is no JSON, with bytes that are not UTF-8 as lone surrogates (PEP 383).
"""

from __future__ import annotations

import json
import time
from typing import IO, Any, Literal

__all__ = ["NOTHING", "Transcript"]

NOTHING: Any = object()
"""What a line that is no JSON says."""


def _refuse(word: str) -> Any:  # noqa: ANN401
    raise ValueError(word)


class Transcript:
    """Writes down a session.

    Args:
        out: where to.
    """

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def note(self, direction: Literal["c2s", "s2c"], data: bytes) -> Any:  # noqa: ANN401
        """Write one message down and return its value, ``NOTHING`` where it is no JSON."""
        head = f'{{"t":{time.time():.6f},"dir":"{direction}",'.encode()
        # A line end can stand only between the parts of a JSON text, never inside a string (RFC 8259 section 7).
        text = data.strip(b" \t\r\n").replace(b"\n", b" ").replace(b"\r", b" ")
        try:
            value = json.loads(text.decode(), parse_constant=_refuse)
        except (ValueError, RecursionError):
            raw = json.dumps(data.decode("utf-8", "surrogateescape"))
            self._out.write(head + b'"raw":' + raw.encode() + b"}\n")
            return NOTHING
        self._out.write(head + b'"msg":' + text + b"}\n")
        return value
