"""What stands before the message of a log line: priority, time, host, program."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcpdetect.ingest.logclock import Stamp, stamp_at

__all__ = ["Header", "header_of"]

# <4>   <30>
_PRIORITY = re.compile(rb"<(\d{1,3})>")
# dmesg -x: "kern  :warn  : [ 2240.284883] ..."
_FACILITY = re.compile(rb"([a-z]{1,10}) {0,8}:[a-z]{1,10} {0,8}: ")
# /dev/kmsg: "4,1049,2240284883,-;eth0: ..."
_KMSG = re.compile(rb"(\d{1,4}),")
# journalctl -o short-full: "Mon 2026-11-30 18:33:46 UTC h kernel: ..."
_WEEKDAY = re.compile(rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ")
# RFC 5424 §6, after the time: "fw unbound 6739 - [meta sequenceId="529"] [6739:3] query: ...", "h kernel - - - IN="
_STRUCTURED = re.compile(
    rb"\S{1,255} (\S{1,48}) (\S{1,128}) \S{1,32} (?:-|(?:\[[^\]\"]*+(?:\"(?:[^\"\\]|\\.)*+\"[^\]\"]*+)*+\])++)(?: |$)"
)
# "kernel: "   "dnsmasq[1643]: "   "unbound: "
_TAG = re.compile(rb"([^\s\[\]:]{1,128}+)(?:\[([^\s\[\]]{1,40}+)\])?+:(?: |$)")
# "h kernel: "   "h kern.warn kernel: " (busybox)   "2026 kern.warn kernel: " (logread, behind "Mon Nov 30 14:20:10")
_HOST_TAG = re.compile(rb"[^\s\[\]]{1,255}+ (?:([a-z0-9]{2,8})\.[a-z]{3,7} )?" + _TAG.pattern)
# journalctl -o short-monotonic: "[  880.640080] h kernel: "
_HOST_KERNEL = re.compile(rb"[^\s\[\]:]{1,255}+ kernel: ")
# "[17748.074339][    C0] "   the caller, CONFIG_PRINTK_CALLER
_CALLER = re.compile(rb"\[ {0,16}[CT]\d{1,10}\]")


@dataclass(slots=True)
class Header:
    """The header of one line.

    Attributes:
        stamp: the time stamp in front.
        inner: the kernel's own stamp, where a log daemon put its header in front of it.
        tag: the program's name, None where the line names none.
        pid: what stands in brackets behind it.
        start: offset of the message.
        user: the facility is not the kernel's own. The kernel itself marks what programs write to ``/dev/kmsg`` so.
    """

    stamp: Stamp | None = None
    inner: Stamp | None = None
    tag: bytes | None = None
    pid: bytes | None = None
    start: int = 0
    user: bool = False


def header_of(line: bytes) -> Header:
    """Return the header of a line; one of an unknown form has no parts and starts at 0."""
    at, user = 0, False
    if match := _PRIORITY.match(line):
        at, user = match.end(), int(match[1]) >= 8
    structured = at > 0 and line.startswith(b"1 ", at)
    if structured:
        at += 2
    elif match := _FACILITY.match(line, at):
        at, user = match.end(), match[1] != b"kern"
    if match := _WEEKDAY.match(line, at):
        at = match.end()
    stamp = stamp_at(line, at)
    if stamp is None:
        tagged = at > 0 and line.startswith(b"kernel: ", at)  # <4>kernel: IN=
        return Header(None, None, b"kernel" if tagged else None, None, at + 8 if tagged else at, user)
    header = Header(stamp, start=_skip(line, stamp.end), user=user)
    if structured and (match := _STRUCTURED.match(line, header.start)):
        header.tag, header.pid, header.start = match[1], match[2] if match[2] != b"-" else None, match.end()
    elif line[stamp.end - 1 : stamp.end] == b";":
        priority = _KMSG.match(line, at)
        header.user = priority is not None and int(priority[1]) >= 8
    elif line[at : at + 1] == b"[" or b"," in line[at : stamp.end]:
        # dmesg in all its forms: the message follows at once, or the caller, or host and "kernel:" of journalctl
        if match := _CALLER.match(line, stamp.end):
            header.start = _skip(line, match.end())
        if match := _HOST_KERNEL.match(line, header.start):
            header.tag, header.start = b"kernel", match.end()
    elif match := _TAG.match(line, header.start):
        header.tag, header.pid, header.start = match[1], match[2], match.end()
    elif match := _HOST_TAG.match(line, header.start):
        header.tag, header.pid, header.start = match[2], match[3], match.end()
        header.user = user or match[1] not in (None, b"kern")
    if header.tag == b"kernel" and (inner := stamp_at(line, header.start)) is not None and inner.sort == "boot":
        match = _CALLER.match(line, inner.end)
        header.inner, header.start = inner, _skip(line, match.end() if match else inner.end)
    return header


def _skip(line: bytes, at: int) -> int:
    return at + 1 if line[at : at + 1] == b" " else at
