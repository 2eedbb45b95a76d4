"""Kernel logs as text: what dmesg prints, what syslog daemons and journalctl write, and bare lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from mcpdetect.errors import UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.firewall.lost import lost_lines
from mcpdetect.ingest.firewall.netfilter import NotAPacket, fields_at, packet, resembles_packet
from mcpdetect.ingest.logclock import LogClock, Stamp
from mcpdetect.ingest.logheader import Header, header_of
from mcpdetect.ingest.loglines import TextLog
from mcpdetect.model.event import Event
from mcpdetect.model.net import FirewallDrop
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of
from mcpdetect.model.vocabulary import Channel

__all__ = ["DAEMONS", "PACKET_LOGGERS", "KernelLog", "PacketLines"]

PACKET_LOGGERS = frozenset({b"kernel", b"ulogd"})
"""Programs whose packet lines are believed. Any program may write to syslog, but not under these names without
privileges in most set-ups; a journal says for certain."""

DAEMONS = frozenset({b"rsyslogd", b"systemd-journald", b"journal", b"syslogd", b"syslog-ng"})
"""Programs whose word about lost lines is believed."""

_SILENT = (
    "no firewall line{} is in this log, which proves nothing: a LOG rule in a network namespace of its own stays "
    "silent unless net.netfilter.nf_log_all_netns is 1, while its counter counts"
)

_SLACK = 2 * 10**9

# message repeated 3 times: [ MCPD-OUT IN= OUT=v0 ... ]
_REPEATED = re.compile(rb"message repeated (\d{1,9}) times: \[ ?")
# last message repeated 5 times
_LAST_REPEATED = re.compile(rb"(?:\S{1,255} )?last message repeated (\d{1,9}) times")


class PacketLines(TextLog):
    """Base of the logs that hold packet lines among others."""

    channel: ClassVar[Channel] = "firewall"
    kinds: ClassVar[tuple[str, ...]] = ("firewall.drop",)
    counted: ClassVar[tuple[str, ...]] = ("packets", "other")

    def _message(
        self, where: Where, line: bytes, tag: bytes | None, message: bytes, t_ns: int | None, *, trusted: bool
    ) -> Iterator[Event]:
        """Yield the event of one message: of a packet, or of what could hide one."""
        packets = 1
        if match := _REPEATED.match(message):
            packets, message = int(match[1]), message[match.end() :].removesuffix(b"]")
            if (inner := header_of(message)).stamp is not None:
                message = message[inner.start :]
        place = fields_at(message)
        if place is not None and trusted:
            try:
                event = packet(message, *place, where, t_ns, packets)
            except NotAPacket as error:
                yield self._unparsed(where, line, f"a packet line is damaged: {error}")
            else:
                self._seen(t_ns, packets)
                yield event
        elif place is not None:
            yield self._unparsed(where, line, "a packet line of a program that is neither the kernel nor ulogd")
        elif (tag is None or tag in PACKET_LOGGERS or tag in DAEMONS) and (said := lost_lines(message)):
            self._book.add("dropped", said[1], where, self.kinds, count=said[0])
            self._counts["other"] += 1
        elif trusted and resembles_packet(message):
            yield self._unparsed(where, line, "a line has fields of a packet, but not in the kernel's form")
        else:
            self._counts["other"] += 1

    def _begin(self) -> None:
        super()._begin()
        self._alive = False

    def _seen(self, t_ns: int | None, packets: int) -> None:
        """Count packets; those of the declared window show that the log was alive in it."""
        self._counts["packets"] += packets
        declared = self._declared
        if declared is None or self._clock.clock != "epoch":
            self._alive = True
            return
        if t_ns is None:
            return
        begin, end = declared.begin_ns, declared.end_ns
        early = begin is not None and t_ns < begin - _SLACK
        late = end is not None and t_ns > end + _SLACK
        self._alive = self._alive or not (early or late)

    def _watched(self) -> bool:
        return self._alive

    def _finish(self) -> None:
        if not self._watched():
            where = " of the declared window" if self._counts["packets"] else ""
            self._book.add("silent-log", _SILENT.format(where), None, note=True)


class KernelLog(PacketLines):
    """A kernel log: packet lines among any others.

    Read are the forms of ``dmesg`` (seconds since boot, ``-T``, ``--time-format=iso``, ``-H``, ``-x``, ``-d``, with or
    without the caller), of ``/dev/kmsg``, of syslog files (RFC 3164, RFC 5424, ISO times, with or without priority), of
    ``journalctl`` and bare messages. Every packet line is an event: retransmissions of one flow are several.
    """

    format: ClassVar[str] = "kernel-log"

    def _look(self) -> Stamp | None:
        first = self._first_known(iter(self._source.first_lines()))
        if first is None and not self._source.whole and not self._source.pipe:
            # A system log may begin with anything; in a pipe nobody can look ahead.
            first = self._first_known(line.data for line in self._source.lines())
        if first is None and (self._source.whole or not self._source.pipe):
            head = self._source.head.lstrip().split(b"\n", 1)[0]
            raise UnknownFormat(
                "is no firewall log: it has neither a packet line (IN= OUT= SRC= DST=) nor another kernel message",
                file=self._name,
                value=text_of(head[:80]),
                cause="another file was named, or the log was filtered to nothing",
                hint="a kernel log (dmesg, journalctl -k, also -o json) or an nftables listing (nft list ruleset)",
            )
        self._headed = first is not None and first.stamp is not None and first.tag is not None
        if first is None or first.inner is None:
            return first.stamp if first is not None else None
        outer = LogClock(self._declared or Declared(), first.stamp)
        return first.stamp if outer.clock != "none" else first.inner

    @staticmethod
    def _first_known(lines: Iterator[bytes]) -> Header | None:
        """Return the header of the first line of a kernel that has a time, else of the first one, None without any."""
        first: Header | None = None
        for line in lines:
            header = header_of(line)
            message = line[header.start :]
            if fields_at(message) is not None or _is_kernel(header, line) or lost_lines(message):
                first = first or header
                if header.stamp is not None:
                    return header
        return first

    def _begin(self) -> None:
        super()._begin()
        self._previous: FirewallDrop | None = None

    def _line(self, where: Where, line: bytes) -> Iterator[Event]:
        header = header_of(line)
        message = line[header.start :]
        if header.tag is None and (match := _LAST_REPEATED.match(message)):
            yield from self._again(where, header, int(match[1]))
            return
        trusted = self._trusted(header)
        events = list(self._message(where, line, header.tag, message, self._time(header), trusted=trusted))
        self._previous = next((event for event in events if isinstance(event, FirewallDrop)), None)
        yield from events

    def _trusted(self, header: Header) -> bool:
        """Return whether only the kernel, or ulogd, can have written a line with this header."""
        if header.tag == b"ulogd":
            return True
        if header.tag is None and self._headed:
            return False  # the second line of some message: programs choose its text
        return header.tag in (None, b"kernel") and header.pid is None and not header.user

    def _cut_line(self, where: Where, line: bytes) -> Iterator[Event]:
        # The last word of such a line may be half of one (DPT=44 of DPT=443): only what a space follows is certain.
        header = header_of(line)
        message = line[header.start :]
        message = message[: message.rfind(b" ") + 1]
        place = fields_at(message)
        if place is not None and self._trusted(header):
            try:
                event = packet(message, *place, where, self._time(header))
            except NotAPacket:
                pass
            else:
                if event.address is not None:
                    self._seen(event.t_ns, 1)
                    yield event
                    return
        yield from super()._cut_line(where, line)

    def _again(self, where: Where, header: Header, times: int) -> Iterator[Event]:
        """Yield the packet of the line before again: ``Nov 30 11:00:01 h last message repeated 5 times``."""
        if self._previous is None:
            self._counts["other"] += 1
            return
        t_ns = self._time(header)
        self._seen(t_ns, times)
        yield replace(self._previous, where=where, t_ns=t_ns, packets=times)

    def _time(self, header: Header) -> int | None:
        first = self._first
        stamp = header.stamp
        if first is not None and stamp is not None and stamp.sort != first.sort and header.inner is not None:
            stamp = header.inner
        return self._clock.time(stamp)


def _is_kernel(header: Header, line: bytes) -> bool:
    """Return whether a header is one that only kernel messages, or the daemons that pass them on, have."""
    if header.tag is not None:
        return header.tag in PACKET_LOGGERS or header.tag in DAEMONS
    stamp = header.stamp
    return stamp is not None and (stamp.sort == "boot" or (stamp.sort != "epoch" and line[:1] == b"["))
