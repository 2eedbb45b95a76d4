"""One event as one readable line: time, place, process, kind, and what happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcpdetect.model.addresses import endpoint
from mcpdetect.model.binary import BinaryImage
from mcpdetect.model.event import (
    CallEvent,
    Event,
    FileChange,
    FileOpen,
    FileProbe,
    FileRead,
    KernelNotable,
    Probe,
    ProcessExecFailed,
    ProcessExit,
    ProcessStart,
    Unparsed,
)
from mcpdetect.model.files import FileDifference
from mcpdetect.model.mcp import McpMessage, McpTool
from mcpdetect.model.net import (
    DnsAnswer,
    DnsQuery,
    FdPass,
    FirewallDrop,
    HttpRequest,
    NetFlow,
    NetPacket,
    QuicInitial,
    SocketConnect,
    SocketListen,
    SocketOpen,
    SocketReceive,
    SocketSend,
    SocketState,
    TlsClientHello,
)
from mcpdetect.model.text import shown, text_of
from mcpdetect.report.layout import counted, moment

__all__ = ["event_line"]

# Times at or after 1973-03-03 in nanoseconds count from 1970; smaller ones from a midnight or a run's beginning.
_EPOCH = 100_000_000_000_000_000
_TEXT = 160
_DATA = 48


def event_line(event: Event, base: str = "") -> str:
    """Return an event as one line without a line break, every character in it harmless.

    Args:
        event: the event.
        base: folder put before its place.
    """
    place = shown(f"{base}{event.where}")
    who = event.process or "-"
    if event.tid is not None:
        who = f"{who}/{event.tid}"
    head = f"{_time(event.t_ns):>16}  {place:<22} {shown(who):>7}  {event.kind:<19}"
    teller = _TELLERS.get(event.kind)
    told = [part for part in (teller(event) if teller else []) if part]
    if isinstance(event, CallEvent):
        told.append(_result(event))
    return f"{head} {' '.join(told)}".rstrip()


def _time(t_ns: int | None) -> str:
    if t_ns is None:
        return "-"
    if t_ns >= _EPOCH:
        return moment(t_ns, day=False)
    return f"{t_ns // 1_000_000_000}.{t_ns % 1_000_000_000 // 1000:06d}"


def _result(event: CallEvent) -> str:
    if event.error is not None:
        return f"= {shown(event.error)}"
    return "= ?" if event.result is None else f"= {event.result}"


def _path(path: str | None, certain: bool = True) -> str:
    return "(unknown file)" if path is None else shown(path, _TEXT) + ("" if certain else " (perhaps)")


def _fd(fd: int | None) -> str:
    return "" if fd is None else f"fd {fd}"


def _size(size: int | None) -> str:
    return "" if size is None else counted(size, "byte")


def _data(data: bytes, *, cut: bool) -> str:
    if not data:
        return "(data not recorded)" if cut else ""
    more = "…" if cut or len(data) > _DATA else ""
    return f'"{shown(text_of(data[:_DATA]))}"{more}'


def _end(address: str | None, port: int | None, path: str | None = None) -> str:
    if address is not None:
        return shown(endpoint(address, port))
    return shown(path, _TEXT) if path is not None else "(unknown address)"


def _argv(argv: list[str] | None, *, cut: bool) -> str:
    return "" if argv is None else f"[{', '.join(shown(item, 80) for item in argv[:12])}{', …' if cut else ''}]"


def _start(event: ProcessStart) -> list[str]:
    parent = f"by {shown(event.parent)}" if event.parent else ""
    program = "" if event.executable is None and event.how != "exec" else _path(event.executable)
    return [event.how, program, _argv(event.argv, cut=event.argv_cut), event.origin or "", parent]


def _exec_failed(event: ProcessExecFailed) -> list[str]:
    return [_path(event.executable), _argv(event.argv, cut=event.argv_cut)]


def _exit(event: ProcessExit) -> list[str]:
    if event.signal is not None:
        return [f"killed by {shown(event.signal)}"]
    return ["ended" if event.code is None else f"code {event.code}"]


def _open(event: FileOpen) -> list[str]:
    return [event.access, _path(event.path, event.certain)]


def _read(event: FileRead) -> list[str]:
    to = f"into {shown(event.to_socket)}" if event.to_socket else f"into fd {event.to_fd}" if event.to_fd else ""
    told = [_fd(event.fd) if event.path is None else "", _path(event.path, event.certain), _size(event.size), to]
    return [*told, "mapped" if event.mapped else "", _data(event.data, cut=event.cut)]


def _change(event: FileChange) -> list[str]:
    target = f"-> {_path(event.target)}" if event.target is not None else ""
    told = [
        event.operation,
        _path(event.path, event.certain),
        target,
        f"mode {shown(event.mode)}" if event.mode else "",
    ]
    return [*told, _size(event.size), _data(event.data, cut=event.cut)]


def _probe_file(event: FileProbe) -> list[str]:
    return [event.operation, _path(event.path, event.certain)]


def _socket(event: SocketOpen) -> list[str]:
    return [shown(event.socket or ""), shown(event.family), shown(event.type), _fd(event.fd)]


def _connect(event: SocketConnect) -> list[str]:
    end = _end(event.address, event.port, event.path) if event.family != "unspec" else "(disconnect)"
    return [shown(event.socket or ""), event.transport or "", end, event.outcome.replace("_", " ")]


def _state(event: SocketState) -> list[str]:
    return [shown(event.socket or ""), event.source, shown(event.status)]


def _send(event: SocketSend) -> list[str]:
    size = _size(event.size) if event.size is not None else f"{_size(event.tried)} tried" if event.tried else ""
    end = f"to {_end(event.address, event.port, event.path)}"
    return [shown(event.socket or ""), event.transport or "", end, size, _data(event.data, cut=event.cut)]


def _receive(event: SocketReceive) -> list[str]:
    end = f"from {_end(event.address, event.port, event.path)}"
    return [shown(event.socket or ""), event.transport or "", end, _size(event.size), _data(event.data, cut=event.cut)]


def _listen(event: SocketListen) -> list[str]:
    end = _end(event.address, event.port, event.path) if event.operation != "listen" or event.address else ""
    return [event.operation, shown(event.socket or ""), event.transport or "", end]


def _passed(event: FdPass) -> list[str]:
    paths = ", ".join(_path(path) for path in event.paths[:8])
    return [event.direction, shown(event.socket or ""), f"fds {', '.join(map(str, event.fds[:8]))}", paths]


def _flow(event: NetFlow) -> list[str]:
    ends = f"{_end(event.source, event.source_port)} -> {_end(event.address, event.port)}"
    told = [f"{event.packets_out}/{event.packets_in} packets", f"{event.bytes_out}/{event.bytes_in} bytes out/in"]
    flags = [f"{name} {count}" for name, count in (("SYN", event.syn), ("SYN-ACK", event.syn_ack)) if count]
    flags += [f"RST {event.rst_out}/{event.rst_in}"] if event.rst_out or event.rst_in else []
    flags += [f"ICMP {item.type}/{item.code} from {shown(item.sender)}" for item in event.icmp[:3]]
    return [event.transport, ends, ", ".join(told + flags), "(begun before the capture)" if event.midstream else ""]


def _packet(event: NetPacket) -> list[str]:
    icmp = f"type {event.icmp_type} code {event.icmp_code}" if event.icmp_type is not None else ""
    ends = f"{_end(event.source, None)} -> {_end(event.address, None)}" if event.source or event.address else ""
    return [shown(event.protocol), icmp, ends, f"for {shown(event.inner)}" if event.inner else "", _size(event.size)]


def _name(name: str | None) -> str:
    return "(name not visible)" if name is None else shown(name, _TEXT) or "."


def _query(event: DnsQuery) -> list[str]:
    to = f"to {_end(event.server, event.server_port)}" if event.server else ""
    by = f"from {_end(event.client, event.client_port)}" if event.client else ""
    lost = f"not sent: {shown(event.error)}" if event.error else ""
    return [shown(event.type), _name(event.name), to, by, "(altered by the logger)" if event.altered else "", lost]


def _answer(event: DnsAnswer) -> list[str]:
    records = ", ".join(f"{shown(record.type)} {shown(record.value, 80)}" for record in event.records[:8])
    more = f" and {len(event.records) - 8} more" if len(event.records) > 8 else ""
    told = records + more or ("no data" if event.no_data else "")
    return [shown(event.type), _name(event.name), shown(event.rcode), event.source, told]


def _hello(event: TlsClientHello) -> list[str]:
    sni = _name(event.sni) if event.sni is not None or event.complete is False else "(no server name)"
    alpn = f"alpn {','.join(shown(item, 20) for item in event.alpn[:6])}" if event.alpn else ""
    return [f"to {_end(event.address, event.port)}", sni, alpn, "ech" if event.ech else ""]


def _quic(event: QuicInitial) -> list[str]:
    return [f"to {_end(event.address, event.port)}", f"version {event.version:#x}", _name(event.sni)]


def _http(event: HttpRequest) -> list[str]:
    host = f"host {shown(event.host, _TEXT)}" if event.host is not None else "(no host)"
    return [f"to {_end(event.address, event.port)}", shown(event.method, 20), shown(event.target, _TEXT), host]


def _drop(event: FirewallDrop) -> list[str]:
    ends = ""
    if event.source or event.address:
        ends = f"{_end(event.source, event.source_port)} -> {_end(event.address, event.port)}"
    return [event.action, shown(event.transport or ""), ends, counted(event.packets, "packet"), shown(event.prefix, 60)]


def _message(event: McpMessage) -> list[str]:
    arrow = "client -> server" if event.direction == "c2s" else "server -> client"
    what = shown(event.method or "", 80) + (f" {shown(event.tool, 80)}" if event.tool else "")
    told = [
        arrow,
        event.form,
        what,
        f"id {shown(event.id, 40)}" if event.id else "",
        "failed" if event.is_error else "",
    ]
    text = event.arguments or event.text
    return [*told, shown(text, _TEXT) if text else ""]


def _tool(event: McpTool) -> list[str]:
    revision = f"revision {event.revision}" if event.revision > 1 else ""
    return [event.part, shown(event.name, 80), revision, counted(len(event.texts), "text"), shown(event.digest, 12)]


def _binary(event: BinaryImage) -> list[str]:
    told = [_path(event.path), _size(event.size), f"sha256 {shown(event.sha256, 12)}"]
    if event.elf is not None:
        elf = event.elf
        calls = "" if not elf.networking else f"calls {', '.join(shown(name, 30) for name in elf.networking[:6])}"
        uring = "io_uring" if elf.io_uring else ""
        packed = f"packed ({elf.packed})" if elf.packed else ""
        told += [shown(elf.machine, 20), elf.linkage, elf.language or "", packed, calls, uring]
    return told


def _difference(event: FileDifference) -> list[str]:
    points = f"-> {_path(event.target)}" if event.target is not None else ""
    digest = f"sha256 {shown(event.sha256, 12)}" if event.sha256 is not None else ""
    size = _size(event.size) if event.type == "file" else ""
    return [event.change, event.type, _path(event.path), points, f"mode {shown(event.mode, 8)}", size, digest]


def _notable(event: KernelNotable) -> list[str]:
    return [shown(event.call), shown(event.detail, _TEXT), _path(event.path) if event.path else ""]


def _probed(event: Probe) -> list[str]:
    return [event.watched, event.phase, shown(event.nonce, 40)]


def _unparsed(event: Unparsed) -> list[str]:
    return [event.seen_in, shown(event.reason, _TEXT), _data(event.raw, cut=False)]


# Each function takes the one event type of its kind.
_TELLERS: dict[str, Callable[[Any], list[str]]] = {
    "process.start": _start,
    "process.exec_failed": _exec_failed,
    "process.exit": _exit,
    "file.open": _open,
    "file.read": _read,
    "file.change": _change,
    "file.probe": _probe_file,
    "socket.open": _socket,
    "socket.connect": _connect,
    "socket.state": _state,
    "socket.send": _send,
    "socket.receive": _receive,
    "socket.listen": _listen,
    "fd.pass": _passed,
    "net.flow": _flow,
    "net.packet": _packet,
    "dns.query": _query,
    "dns.answer": _answer,
    "tls.client_hello": _hello,
    "quic.initial": _quic,
    "http.request": _http,
    "firewall.drop": _drop,
    "mcp.message": _message,
    "mcp.tool": _tool,
    "binary.image": _binary,
    "file.difference": _difference,
    "kernel.notable": _notable,
    "probe": _probed,
    "unparsed": _unparsed,
}
