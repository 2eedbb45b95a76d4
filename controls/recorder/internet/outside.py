"""The recorder's own acts from the internet's side, by order over standard input."""

from __future__ import annotations

import contextlib
import json
import socket
import struct

from controls.recorder.internet.wire import wire_name

__all__ = ["probe"]


def probe(order: str) -> None:
    """Act where a denial lets nothing through: ask the name server, and broadcast on the wire, where nobody answers.

    Args:
        order: JSON of the name to ask for, the server (``""``: nobody), the broadcast address, port and text.
    """
    name, server, broadcast, port, text = json.loads(order)
    question = struct.pack(">HHHIH", 0x4D50, 0x0100, 1, 0, 0) + wire_name(name) + b"\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        if server:
            one.sendto(question, (server, 53))
        one.sendto(text.encode(), (broadcast, port))
