"""The journal of a fake internet: everything it received, byte for byte, one JSON object a line.

Every line has ``t`` (epoch nanoseconds) and ``kind``:

==============  ====================================================================================================
``connection``  a TCP connection: ``connection`` (its number in every later line), ``peer``, ``to`` (address and port
                the client dialled), ``name`` (whose address that is, null for nobody's)
``received``    its next bytes: ``bytes`` (base64), ``layer`` (``tcp``; ``tls``: what was inside; ``rest``: as on the
                wire, after the sink had ended the connection)
``tls``         a finished handshake: ``sni``, ``alpn``, ``version``, ``cipher``
``tls-failed``  a handshake that the client or the server broke off: ``sni``, ``why``, and ``bytes`` as they came
``request``     an HTTP request: ``protocol``, ``scheme``, ``method``, ``host``, ``path``, ``headers``, ``body``
                (base64), ``body_size`` where it is longer than that
``query``       a DNS query: ``over`` (``udp``, ``tcp``, ``tls``, ``https``, ``dnsmasq``), ``name``, ``type``,
                ``bytes``
``tunnel``      a proxy request that was granted: ``to``
``datagram``    a UDP datagram: ``peer``, ``to``, ``name``, ``bytes``
``dropped``     how many ``datagrams`` the kernel had no room for since the line before
``closed``      the end of a connection: ``by`` (``client``, ``sink``, ``idle``, ``error``)
``fault``       a mistake of the fake internet itself: ``why``; what it received then may be missing
``full``        the journal's limit was reached: from here on ``bytes`` is null, with ``size`` and ``sha256`` instead
``lost``        how many ``lines`` were left out at the end, because the journal itself had become too long
==============  ====================================================================================================
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from pathlib import Path

from controls.recorder.internet.wire import Question

__all__ = ["MOST_BYTES", "Endpoint", "Journal"]

MOST_BYTES = 64 * 1024 * 1024
"""Most received bytes that are kept; of more, only size and hash."""
_LINES = 4
"""How many times more the journal itself may take: of many small datagrams, most of it is not what they held."""

Endpoint = tuple[str, int]
"""An address and a port."""


class Journal:
    """Writes the journal; every line is in the file when the call returns.

    Args:
        path: the file, new or empty.
        most: most received bytes that are kept.
    """

    def __init__(self, path: Path, most: int = MOST_BYTES) -> None:
        self._file = path.open("wb", buffering=0)
        self._left = most
        self._room = _LINES * most
        self._lost = 0
        self._connections = 0
        self._full = False

    def close(self) -> None:
        """Write how many lines were left out, if any, and close the file."""
        if self._lost:
            self._file.write(json.dumps({"t": time.time_ns(), "kind": "lost", "lines": self._lost}).encode() + b"\n")
        self._file.close()

    def write(self, kind: str, **values: object) -> None:
        """Write one line; values that are bytes become base64."""
        line: dict[str, object] = {"t": time.time_ns(), "kind": kind}
        for key, value in values.items():
            if isinstance(value, bytes):
                line.update(self._kept(key, value))
            else:
                line[key] = value
        if self._full and self._left >= 0:
            self._left = -1
            self._put({"t": line["t"], "kind": "full"})
        self._put(line)

    def _kept(self, key: str, value: bytes) -> dict[str, object]:
        if len(value) <= self._left:
            self._left -= len(value)
            return {key: base64.b64encode(value).decode()}
        self._full = True
        return {key: None, "size": len(value), "sha256": hashlib.sha256(value).hexdigest()}

    def _put(self, line: dict[str, object]) -> None:
        data = json.dumps(line).encode() + b"\n"
        if len(data) > self._room:
            self._room = 0
            self._lost += 1
            return
        self._room -= len(data)
        self._file.write(data)

    def connection(self, peer: Endpoint, to: Endpoint, name: str | None) -> int:
        """Write that a connection came; return its number."""
        self._connections += 1
        self.write("connection", connection=self._connections, peer=list(peer), to=list(to), name=name)
        return self._connections

    def query(self, over: str, asked: Question | None, message: bytes, **values: object) -> None:
        """Write a DNS query; ``asked`` is None for bytes that are none."""
        self.write(
            "query",
            over=over,
            name=asked.name if asked is not None else None,
            type=asked.kind if asked is not None else None,
            bytes=message,
            **values,
        )
