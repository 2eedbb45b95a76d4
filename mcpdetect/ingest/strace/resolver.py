"""Lookups that leave through a local resolver's unix socket: systemd-resolved (varlink) and nscd."""

from __future__ import annotations

import json
from typing import Any

from mcpdetect.ingest.dnswire import address_text, rcode_name, type_name
from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Socket
from mcpdetect.model.net import DnsAnswer, DnsQuery, DnsRecord
from mcpdetect.model.text import text_of

__all__ = ["answered", "asked"]

# systemd: src/shared/varlink-io.systemd.Resolve.c
_VARLINK = "/run/systemd/resolve/io.systemd.Resolve"
# glibc: nscd/nscd-client.h
_NSCD = ("/var/run/nscd/socket", "/run/nscd/socket")
_NSCD_VERSION = (2).to_bytes(4, "little")
_NSCD_HOSTS = {4: "A", 5: "AAAA", 14: "A"}  # GETHOSTBYNAME, GETHOSTBYNAMEv6, GETAI
_FAMILIES = {2: "A", 10: "AAAA"}


def asked(call: Call, recorder: Recorder, socket: Socket, path: str, data: bytes, cut: bool) -> bool:
    """Emit the questions sent to a local resolver; return whether ``path`` is one."""
    if path == _VARLINK:
        _varlink_question(call, recorder, socket, data, cut)
        return True
    if path in _NSCD:
        if data[:4] == _NSCD_VERSION and len(data) > 12:
            kind = _NSCD_HOSTS.get(int.from_bytes(data[4:8], "little"))
            if kind is not None:
                name = None if cut else text_of(data[12:].rstrip(b"\0")).lower().rstrip(".")
                _query(call, recorder, name, kind)
        return True
    return False


def answered(call: Call, recorder: Recorder, socket: Socket, path: str, data: bytes, cut: bool) -> None:
    """Emit the answers of systemd-resolved; nscd's are not decoded."""
    if path != _VARLINK or cut:
        return
    for message in _messages(data):
        parameters = message.get("parameters")
        parameters = parameters if isinstance(parameters, dict) else {}
        name = socket.asked if socket.asked is not None else _name(parameters.get("name"))
        error = message.get("error")
        rcode = "NOERROR"
        if isinstance(error, str):
            code = parameters.get("rcode")
            rcode = rcode_name(code) if isinstance(code, int) and 0 <= code < 4096 else "SERVFAIL"
        records = [record for item in _list(parameters.get("addresses")) if (record := _record(item, name or ""))]
        kind = records[0].type if records else "A"
        recorder.emit(
            DnsAnswer(
                call.where,
                call.t_ns,
                seen_in="syscalls",
                name=name,
                type=kind,
                rcode=rcode,
                records=records,
                transport="unix",
                process=call.thread.process.id,
                tid=call.thread.number,
            )
        )


def _varlink_question(call: Call, recorder: Recorder, socket: Socket, data: bytes, cut: bool) -> None:
    found = False
    for message in _messages(data):
        parameters = message.get("parameters")
        parameters = parameters if isinstance(parameters, dict) else {}
        method = message.get("method")
        kind = "A"
        if method == "io.systemd.Resolve.ResolveHostname":
            kind = _FAMILIES.get(_integer(parameters.get("family")), "A")
        elif method == "io.systemd.Resolve.ResolveRecord":
            kind = type_name(_integer(parameters.get("type")) & 0xFFFF)
        elif method == "io.systemd.Resolve.ResolveService":
            kind = "SRV"
        else:
            found = True
            continue
        found = True
        socket.asked = _name(parameters.get("name"))
        _query(call, recorder, socket.asked, kind)
    if cut and not found:
        socket.asked = None
        _query(call, recorder, None, "A")


def _query(call: Call, recorder: Recorder, name: str | None, kind: str) -> None:
    if name is None:
        recorder.loss("name-hidden", "a lookup whose name strace cut", call, note=True)
    recorder.emit(
        DnsQuery(
            call.where,
            call.t_ns,
            seen_in="syscalls",
            name=name,
            type=kind,
            transport="unix",
            error=call.error,
            process=call.thread.process.id,
            tid=call.thread.number,
        )
    )


def _messages(data: bytes) -> list[dict[str, Any]]:
    """Return the NUL-terminated JSON objects that can be read (varlink.org, "Service")."""
    found = []
    for part in data.split(b"\0"):
        if not part.startswith(b"{"):
            continue
        try:
            value = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _name(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return text_of(value.encode("utf-8", "replace")).lower().rstrip(".")


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _record(item: object, name: str) -> DnsRecord | None:
    if not isinstance(item, dict):
        return None
    parts = item.get("address")
    kind = _FAMILIES.get(_integer(item.get("family")))
    if kind is None or not isinstance(parts, list) or len(parts) not in {4, 16}:
        return None
    if not all(isinstance(part, int) and 0 <= part < 256 for part in parts):
        return None
    return DnsRecord(name, kind, address_text(bytes(parts)))
