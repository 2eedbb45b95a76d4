"""Names in DNS messages (RFC 1035 §3.1, §4.1.4): labels, compression pointers, escapes."""

from __future__ import annotations

__all__ = ["MOST_NAME", "PLAIN", "CutError", "DnsFormatError", "read_name"]

PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
"""The bytes of a label that stand for themselves in its text."""

_ESCAPED = {byte: chr(byte) if byte in PLAIN else f"\\{byte:03d}" for byte in range(256)} | {0x2E: "\\."}
MOST_NAME = 255
"""Most bytes of a name (RFC 1035 §2.3.4), length octets and the root's included."""

_MOST_JUMPS = 127  # a name of 255 bytes has at most 127 labels, and one pointer behind each is enough


class DnsFormatError(ValueError):
    """Bytes that are no DNS message, or one whose first question cannot be read."""


class CutError(DnsFormatError):
    """The message goes on behind the end of the buffer."""


def read_name(data: bytes, at: int, known: dict[int, tuple[str, int]]) -> tuple[str, int]:
    """Read a name; return it with its letter case and escapes, and the offset behind it.

    ``known`` keeps the names by offset, so that no part of a message is walked twice. A pointer must lead backwards
    (RFC 1035 §4.1.4: a *prior* occurrence), which rules out every loop.

    Args:
        data: the message.
        at: where the name begins.
        known: names by offset, each with its length in bytes; grows.

    Raises:
        DnsFormatError: it is no name, or the message ends within it.
    """
    labels: list[str] = []
    visited: list[tuple[int, int, int]] = [(at, 0, 0)]
    lowest = at
    behind = 0
    length = 1
    size = len(data)
    tail = ""
    while True:
        if at >= size:
            raise CutError("a name is cut")
        head = data[at]
        if head == 0:
            at += 1
            break
        if head < 64:
            label = data[at + 1 : at + 1 + head]
            if len(label) < head:
                raise CutError("a name is cut in a label")
            length += head + 1
            if length > MOST_NAME:
                raise DnsFormatError("a name is longer than 255 bytes")
            if label.translate(None, PLAIN):
                labels.append("".join([_ESCAPED[byte] for byte in label]))
            else:
                labels.append(label.decode("ascii"))
            at += 1 + head
            continue
        if head < 192:
            raise DnsFormatError(f"a label of the unknown kind 0x{head & 0xC0:02x}")
        if at + 2 > size:
            raise CutError("a name is cut in a pointer")
        target = ((head & 0x3F) << 8) | data[at + 1]
        behind = behind or at + 2
        found = known.get(target)
        if found is not None and target < lowest:
            tail, rest = found
            length += rest - 1
            if length > MOST_NAME:
                raise DnsFormatError("a name is longer than 255 bytes")
            break
        if target >= lowest or target < 12:
            raise DnsFormatError(f"a compression pointer to offset {target} does not lead backwards to a name")
        if len(visited) > _MOST_JUMPS:
            raise DnsFormatError("a name of more than 127 compression pointers")
        visited.append((target, len(labels), length - 1))
        lowest = at = target
    if tail:
        labels.append(tail)
    for place, first, before in visited:
        known[place] = (".".join(labels[first:]), length - before)
    return known[visited[0][0]][0], behind or at
