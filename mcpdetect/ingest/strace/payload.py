"""What a socket's first bytes say: DNS, TLS hello, HTTP request, and the local resolvers' own protocols."""

from __future__ import annotations

import re

from mcpdetect.ingest.dnswire import DnsFormatError, DnsMessage, parse_message
from mcpdetect.ingest.strace import resolver
from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Peer, Socket
from mcpdetect.ingest.tls import client_hello, looks_like_hello
from mcpdetect.model.net import DnsAnswer, DnsQuery, HttpRequest, TlsClientHello
from mcpdetect.model.text import text_of

__all__ = ["flush_hello", "flush_hellos", "received", "sent"]

# RFC 1035 §4.2, RFC 6762 §3 (mDNS), RFC 4795 §2.1 (LLMNR)
_DNS_PORTS = frozenset({53, 5353, 5355})
_MOST_HELLO = 16_384
_MOST_HELLOS = 1000
_MOST_STREAM = 66_000

# GET /index.html HTTP/1.1      CONNECT exfil.test:443 HTTP/1.1
_REQUEST = re.compile(rb"([A-Z]{3,16}) ([!-~]{1,8000}+)(?: HTTP/1\.[01](?:\r?\n|\Z)|\Z)")
_HOST = re.compile(rb"\r?\n[Hh][Oo][Ss][Tt]:[ \t]*+([^\r\n]{0,300}+)")


def sent(call: Call, recorder: Recorder, socket: Socket, remote: Peer | None, data: bytes, cut: bool) -> None:
    """Read what was sent, or what could not be sent."""
    if not data and not cut:
        return
    transport = socket.transport
    if remote is not None and remote.port in _DNS_PORTS:
        if recorder.wants("dns.query") or recorder.wants("dns.answer"):
            socket.outbox = _dns(call, recorder, socket, remote, data, cut, socket.outbox)
        return
    path = remote.path if remote else None
    if path is not None and recorder.wants("dns.query") and resolver.asked(call, recorder, socket, path, data, cut):
        return
    if transport not in {"tcp", "unix", "vsock", None} or not call.ok:
        return
    if not socket.sent or socket.greeting:
        _hello(call, recorder, socket, remote, data, cut)
    if recorder.wants("http.request") and data[:1].isalpha():
        _http(call, recorder, socket, remote, data, cut)
    elif data:
        socket.sent = True


def received(call: Call, recorder: Recorder, socket: Socket, remote: Peer | None, data: bytes, cut: bool) -> None:
    """Read what was received."""
    if socket.greeting:
        flush_hello(recorder, socket)
    if remote is None:
        return
    if remote.port in _DNS_PORTS:
        if recorder.wants("dns.answer") or recorder.wants("dns.query"):
            socket.inbox = _dns(call, recorder, socket, remote, data, cut, socket.inbox)
    elif remote.path is not None and recorder.wants("dns.answer"):
        resolver.answered(call, recorder, socket, remote.path, data, cut)


def _dns(call: Call, recorder: Recorder, socket: Socket, remote: Peer, data: bytes, cut: bool, waiting: bytes) -> bytes:
    """Emit the messages of one buffer; return the bytes of a message whose rest is still to come (TCP)."""
    if socket.transport != "tcp":
        _dns_message(call, recorder, socket, remote, data, cut)
        return b""
    stream = waiting + data
    while len(stream) >= 2:
        size = int.from_bytes(stream[:2], "big")
        if len(stream) < 2 + size:
            if not cut:
                return stream[:_MOST_STREAM]
            _dns_message(call, recorder, socket, remote, stream[2:], True)
            return b""
        _dns_message(call, recorder, socket, remote, stream[2 : 2 + size], False)
        stream = stream[2 + size :]
    return b"" if cut else stream


def _dns_message(call: Call, recorder: Recorder, socket: Socket, remote: Peer, data: bytes, cut: bool) -> None:
    try:
        message = parse_message(data, cut=cut)
    except DnsFormatError:
        if cut:
            # Cut before its question: a lookup with an unknown name.
            message = DnsMessage(
                int.from_bytes(data[:2], "big"), call.name.startswith("r"), "", False, [(None, None, "")], []
            )
        else:
            recorder.loss("not-dns", "bytes to a DNS port that are no DNS message", call, note=True)
            return
    transport = socket.transport
    thread = call.thread
    if not message.response:
        if not recorder.wants("dns.query"):
            return
        for name, spelled, kind in message.questions:
            if name is None:
                recorder.loss("name-hidden", "a DNS question whose name strace cut", call, note=True)
            recorder.emit(
                DnsQuery(
                    call.where,
                    call.t_ns,
                    seen_in="syscalls",
                    name=name,
                    type=kind,
                    spelled=spelled,
                    server=remote.address,
                    server_port=remote.port,
                    transport=transport,
                    id=message.id,
                    error=call.error,
                    process=thread.process.id,
                    tid=thread.number,
                )
            )
        return
    if not recorder.wants("dns.answer"):
        return
    name, _, kind = message.questions[0] if message.questions else (None, None, "")
    recorder.emit(
        DnsAnswer(
            call.where,
            call.t_ns,
            seen_in="syscalls",
            name=name,
            type=kind,
            rcode=message.rcode,
            records=message.records,
            no_data=message.rcode == "NOERROR" and not message.records and not cut and not message.damage,
            server=remote.address,
            transport=transport,
            id=message.id,
            process=thread.process.id,
            tid=thread.number,
        )
    )


def _hello(call: Call, recorder: Recorder, socket: Socket, remote: Peer | None, data: bytes, cut: bool) -> None:
    if not recorder.wants("tls.client_hello"):
        return
    stream = socket.greeting + data
    if not looks_like_hello(stream):
        flush_hello(recorder, socket)
        return
    first = recorder.hellos.get(socket.id) if socket.greeting else None
    socket.greeting = stream[:_MOST_HELLO]
    recorder.hellos[socket.id] = (*(first[:2] if first else (call, remote)), socket.greeting)
    hello = client_hello(stream)
    if cut or hello is None or hello.complete or len(stream) >= _MOST_HELLO:
        flush_hello(recorder, socket)
    elif len(recorder.hellos) > _MOST_HELLOS:
        oldest = next(iter(recorder.hellos))
        _emit_hello(recorder, oldest, recorder.hellos[oldest][2])


def flush_hello(recorder: Recorder, socket: Socket) -> None:
    """Emit the hello that a socket began, whole or not."""
    stream, socket.greeting = socket.greeting, b""
    socket.sent = True
    _emit_hello(recorder, socket.id, stream)


def flush_hellos(recorder: Recorder) -> None:
    """Emit the hellos that no later line finished."""
    for socket, (_, _, stream) in list(recorder.hellos.items()):
        _emit_hello(recorder, socket, stream)


def _emit_hello(recorder: Recorder, socket: str, stream: bytes) -> None:
    held = recorder.hellos.pop(socket, None)
    if held is None:
        return
    call, remote, _ = held
    hello = client_hello(stream)
    if hello is None and stream:
        return
    recorder.emit(
        TlsClientHello(
            call.where,
            call.t_ns,
            seen_in="syscalls",
            address=remote.address if remote else None,
            port=remote.port if remote else None,
            sni=hello.sni if hello else None,
            alpn=hello.alpn if hello else [],
            ech=hello.ech if hello else False,
            complete=hello.complete if hello else False,
            socket=socket,
            process=call.thread.process.id,
            tid=call.thread.number,
        )
    )


def _http(call: Call, recorder: Recorder, socket: Socket, remote: Peer | None, data: bytes, cut: bool) -> None:
    match = _REQUEST.match(data)
    if match is None or (match.end() == len(data) and not cut and not data.endswith(b"\n")):
        socket.sent = True
        return
    method, target = match.groups()
    # After CONNECT the tunnel begins anew: the next bytes may be a TLS hello.
    socket.sent = method != b"CONNECT"
    end = data.find(b"\r\n\r\n")
    host = _HOST.search(data[: end if end >= 0 else len(data)])
    if host and cut and host.end() == len(data):
        host = None  # cut within its value: what is left of a name is another name
    if cut and match.end(2) == len(data) and (method == b"CONNECT" or b"://" in target):
        # CONNECT exfil.te...: what is left of the host is another host
        recorder.loss("name-hidden", "a request through a proxy whose host strace cut", call, note=True)
        return
    recorder.emit(
        HttpRequest(
            call.where,
            call.t_ns,
            seen_in="syscalls",
            method=method.decode("ascii"),
            target=text_of(target),
            host=text_of(host[1].rstrip()) if host else None,
            address=remote.address if remote else None,
            port=remote.port if remote else None,
            socket=socket.id,
            process=call.thread.process.id,
            tid=call.thread.number,
        )
    )
