"""Keys of TLS connections that a program kept (``SSLKEYLOGFILE``): beside a capture, what could be deciphered.

The format is that of draft-ietf-tls-keylogfile: a label, the random bytes of the ClientHello that began the connection,
and a secret, in hexadecimal. Nothing is deciphered here yet, so the file shows no events; what it is good for stands in
its observation's counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.loglines import LineSource, LossBook
from mcpdetect.model.event import Event
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where

__all__ = ["KEYLOG_FORMAT", "TlsKeyLog"]

KEYLOG_FORMAT = "tls-keylog"
"""The format's name in manifests."""

_MOST_CONNECTIONS = 1_000_000
# CLIENT_TRAFFIC_SECRET_0 5ec1...(32 bytes) 9f0b...(32 or 48 bytes)
_LINE = re.compile(rb"([A-Z0-9_]{1,64}+) ([0-9A-Fa-f]{64}+) ((?:[0-9A-Fa-f]{2}){1,128}+)[ \t]*+")


class TlsKeyLog:
    """One key log: an observation of the channel ``packets`` that watches nothing by itself.

    It never stands in for a capture: no kind of event is in its ``watches``, and nothing wrong with it is more than a
    note, because no claim rests on it.

    Args:
        path: the file, compressed or not.
        name: its name in every place; the path otherwise.
        declared: what a manifest says about it.

    Raises:
        InputError: it cannot be opened or is empty.
    """

    def __init__(self, path: Path, name: str | None = None, declared: Declared | None = None) -> None:
        self._source = LineSource.of(path, name)
        self._declared = declared or Declared()
        self._observation = Observation(
            channel="packets",
            source=self._source.name,
            format=KEYLOG_FORMAT,
            tool=self._declared.tool,
            options=list(self._declared.options or ()),
            proof="inferred" if declared is None else "declared",
            clock="none",
            begin_ns=self._declared.begin_ns,
            end_ns=self._declared.end_ns,
            # A claim never rests on it, so it cannot cut one short.
            complete=True,
            counts=dict.fromkeys(("lines", "secrets", "connections", "unparsed"), 0),
            scope=self._declared.scope,
        )

    @property
    def observation(self) -> Observation:
        """What the file holds; complete after ``events`` was read to its end."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Read the file; there are no events in it."""
        book = LossBook()
        counts = dict.fromkeys(("lines", "secrets", "connections", "unparsed"), 0)
        connections: set[bytes] = set()
        for line in self._source.lines():
            counts["lines"] += 1
            if not line.data.strip() or line.data.startswith(b"#"):
                continue
            found = None if line.cut else _LINE.fullmatch(line.data)
            if found is None:
                counts["unparsed"] += 1
                where = Where(self._source.name, line.at)
                book.add("unparsed", "a line is no label, random and secret of a TLS key log", where, note=True)
                continue
            counts["secrets"] += 1
            if len(connections) < _MOST_CONNECTIONS:
                connections.add(bytes.fromhex(found[2].decode("ascii")))
        if self._source.damaged:
            book.add("file-truncated", "the compressed stream broke off", note=True)
        counts["connections"] = len(connections)
        self._observation.counts = counts
        self._observation.losses = [replace(loss, note=True) for loss in (*self._declared.losses, *book.losses())]
        return iter(())
