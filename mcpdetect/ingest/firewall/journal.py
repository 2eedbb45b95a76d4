"""The kernel's messages as journald keeps them: ``journalctl -k -o json``, one object a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.firewall.kernel import DAEMONS, PacketLines
from mcpdetect.ingest.firewall.netfilter import fields_at
from mcpdetect.ingest.logclock import Stamp
from mcpdetect.model.event import Event
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of

__all__ = ["JournalLog", "is_journal"]

_LATEST = (1 << 63) // 1000


def is_journal(line: bytes) -> bool:
    """Return whether a line is an entry of a journal in JSON."""
    entry = _entry(line)
    return entry is not None and ("MESSAGE" in entry or "__REALTIME_TIMESTAMP" in entry)


class JournalLog(PacketLines):
    """A journal in JSON (systemd ``journalctl -o json``, also ``json-seq``).

    Only entries that journald itself received from the kernel are believed to be packets.
    """

    format: ClassVar[str] = "journal-json"

    def _look(self) -> Stamp | None:
        for line in self._source.first_lines():
            entry = _entry(line)
            if entry is not None and ("MESSAGE" in entry or "__REALTIME_TIMESTAMP" in entry):
                return _stamp(entry)
        raise UnknownFormat(
            "is no journal: no line of it is a JSON object with MESSAGE",
            file=self._name,
            value=text_of(self._source.head[:80]),
            hint="journalctl -k -o json",
        )

    def _line(self, where: Where, line: bytes) -> Iterator[Event]:
        entry = _entry(line)
        if entry is None:
            yield self._unparsed(where, line, "not a JSON object")
            return
        message = _bytes(entry.get("MESSAGE"))
        if message is None:
            # Written as null when it is longer than journalctl prints (without --all).
            yield self._unparsed(where, line, "an entry without its message")
            return
        identifier = _bytes(entry.get("SYSLOG_IDENTIFIER")) or b""
        transport = _bytes(entry.get("_TRANSPORT"))
        unit = _bytes(entry.get("_SYSTEMD_UNIT")) or b""
        kernel = identifier == b"kernel" and transport in (None, b"kernel")
        # The kernel marks what programs write to /dev/kmsg with another facility than its own, 0.
        kernel = kernel and entry.get("SYSLOG_FACILITY", "0") == "0"
        if not kernel and fields_at(message) is None and identifier not in DAEMONS:
            self._counts["other"] += 1
            return
        trusted = kernel or unit.startswith(b"ulogd")
        t_ns = self._clock.time(_stamp(entry))
        yield from self._message(where, line, identifier, message, t_ns, trusted=trusted)


def _entry(line: bytes) -> dict[str, object] | None:
    # application/json-seq (RFC 7464) puts a record separator before each entry.
    line = line.lstrip(b"\x1e \t")
    if line[:1] != b"{":
        return None
    try:
        entry = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _bytes(value: object) -> bytes | None:
    """Return a field's bytes: journald writes text as a string, other bytes as numbers, several values as a list."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, list) and value:
        if all(isinstance(item, int) and 0 <= item < 256 for item in value):
            return bytes(value)
        return _bytes(value[0]) if not isinstance(value[0], list) else None
    return None


def _stamp(entry: dict[str, object]) -> Stamp | None:
    # "__REALTIME_TIMESTAMP":"1796048335829412"
    value = entry.get("__REALTIME_TIMESTAMP")
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20 and int(value) < _LATEST:
        return Stamp("epoch", int(value) * 1000, 0)
    return None
