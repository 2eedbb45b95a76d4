"""Replacing personal details in a pcapng capture, block by block (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

import struct

from mcpdetect.score.promote_redact import Redaction

__all__ = ["redacted_pcapng"]

_SECTION, _INTERFACE, _OLD, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_MAGIC = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}


def redacted_pcapng(data: bytes, redaction: Redaction) -> bytes | None:
    """Return a capture of the same length with its packets and the text of every block replaced.

    Args:
        data: the whole file.
        redaction: what details become.

    Returns:
        The capture, None where the file is no pcapng or a block is damaged, so that nothing about it is certain.
    """
    made = []
    order, links = "", list[int]()
    at = 0
    while at < len(data):
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order, links = _MAGIC.get(data[at + 8 : at + 12], ""), []
        if not order or at + 12 > len(data):
            return None
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if size < 12 or size % 4 or at + size > len(data):
            return None
        body = data[at + 8 : at + size - 4]
        made.append(data[at : at + 8] + _block(kind, body, order, links, redaction) + data[at + size - 4 : at + size])
        at += size
    return b"".join(made) if made else None


def _block(kind: int, body: bytes, order: str, links: list[int], redaction: Redaction) -> bytes:
    if kind == _INTERFACE and len(body) >= 8:
        links.append(int(struct.unpack_from(f"{order}H", body)[0]))
        return body[:8] + redaction.binary(body[8:])
    head, interface, captured = 0, 0, 0
    if kind == _ENHANCED and len(body) >= 20:
        interface, _, _, captured = struct.unpack_from(f"{order}IIII", body)
        head = 20
    elif kind == _OLD and len(body) >= 20:
        interface, _, _, _, captured = struct.unpack_from(f"{order}HHIII", body)
        head = 20
    elif kind == _SIMPLE and len(body) >= 4:
        head, captured = 4, len(body) - 4
    if not head or interface >= len(links):
        return redaction.binary(body)
    end = min(head + captured, len(body))
    return redaction.packet(body[:end], head, links[interface]) + redaction.binary(body[end:])
