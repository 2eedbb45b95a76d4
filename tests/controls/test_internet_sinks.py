"""TCP sinks alone, on loopback: forms of HTTP, hostile bytes, cuts anywhere; the journal keeps all that came."""

import asyncio
import base64
import hashlib
import json
import socket
import ssl
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controls.recorder.internet.authority import authority_file, certificate_of
from controls.recorder.internet.datagrams import Datagrams
from controls.recorder.internet.journal import Journal
from controls.recorder.internet.names import Names, load_names
from controls.recorder.internet.sinks import Sinks
from controls.recorder.internet.streams import TlsServer

NAME = "api.example.com"
QUERY = b"\x12\x34\1\0\0\1\0\0\0\0\0\0\3api\7example\3com\0\0\1\0\1"
REQUEST = f"POST /a HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 3\r\n\r\nabc".encode()
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return authority_file(tmp_path_factory.mktemp("authority"))


class Talk:
    """What one client got, and what the journal says."""

    def __init__(self, got: bytes, lines: list[dict[str, Any]]) -> None:
        self.got = got
        self.lines = lines

    @property
    def received(self) -> bytes:
        return b"".join(base64.b64decode(line["bytes"]) for line in self.lines if line["kind"] == "received")

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["kind"] == kind]

    @property
    def end(self) -> str:
        assert self.lines[-1]["kind"] == "closed"
        return str(self.lines[-1]["by"])


async def _talk(
    folder: Path, authority: Path, parts: Iterable[bytes], table: dict[str, Any], patience: float, stay: bool
) -> Talk:
    path = folder / "journal.jsonl"
    journal = Journal(path)
    names = Names("answer", load_names(table))
    sinks = Sinks(names, journal, TlsServer(authority, lambda name: names.find(name).alpn), patience)
    server = socket.create_server(("127.0.0.1", 0))
    server.setblocking(False)
    listening = asyncio.ensure_future(sinks.listen(server))
    reader, writer = await asyncio.open_connection(*server.getsockname())
    for number, part in enumerate(parts):
        if number:
            await asyncio.sleep(0.03)  # apart, as the network would bring them
        writer.write(part)
        await writer.drain()
    if not stay:
        writer.write_eof()
    got = await asyncio.wait_for(reader.read(-1), 20)
    writer.close()
    while b'"closed"' not in path.read_bytes():
        await asyncio.sleep(0.002)
    listening.cancel()
    server.close()
    journal.close()
    return Talk(got, [json.loads(line) for line in path.read_text().splitlines()])


def talk(
    folder: Path,
    authority: Path,
    *parts: bytes,
    table: dict[str, Any] | None = None,
    patience: float = 5.0,
    stay: bool = False,
) -> Talk:
    return asyncio.run(_talk(folder, authority, parts, table or {}, patience, stay))


def hello(name: str | None = NAME) -> bytes:
    """Return a real ClientHello."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    out = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return out.read()


@given(data=st.binary(min_size=1, max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_bytes_end_in_the_journal(data: bytes, authority: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    one = talk(tmp_path_factory.mktemp("talk"), authority, data)
    failed = one.of("tls-failed")
    assert one.received + b"".join(base64.b64decode(line["bytes"]) for line in failed) == data
    assert one.end in ("client", "error", "sink")


@pytest.mark.parametrize("what", ["request", "h2", "dns", "socks"])
def test_a_cut_at_every_byte_is_in_the_journal(what: str, authority: Path, tmp_path: Path) -> None:
    whole = {
        "request": REQUEST,
        "h2": PREFACE + b"\0\0\0\4\0\0\0\0\0",
        "dns": len(QUERY).to_bytes(2, "big") + QUERY,
        "socks": b"\5\1\0" + b"\5\1\0\3\4a.bc\1\xbb" + b"data",
    }[what]
    checked = 0
    for cut in range(1, len(whole) + 1):
        folder = tmp_path / str(cut)
        folder.mkdir()
        parts = (whole[:3], whole[3:cut]) if what == "socks" and cut > 3 else (whole[:cut],)
        one = talk(folder, authority, *parts)
        assert one.received == whole[:cut], cut
        assert one.end in ("client", "error"), cut
        checked += 1
    assert checked == len(whole)


def test_a_hello_cut_anywhere_is_a_failed_handshake(authority: Path, tmp_path: Path) -> None:
    whole = hello()
    checked = 0
    for cut in range(1, len(whole), 37):
        folder = tmp_path / str(cut)
        folder.mkdir()
        one = talk(folder, authority, whole[:cut])
        (failed,) = one.of("tls-failed")
        assert base64.b64decode(failed["bytes"]) == whole[:cut]
        assert failed["why"] == "the client went away in the middle of the handshake"
        assert one.end == "client"
        checked += 1
    assert checked > 5


def test_who_says_nothing_is_waited_for_and_then_left(authority: Path, tmp_path: Path) -> None:
    one = talk(tmp_path, authority, patience=0.1, stay=True)
    assert (one.got, one.received, one.end) == (b"", b"", "idle")


def test_who_hangs_up_on_the_answer_is_heard_to_the_end(authority: Path, tmp_path: Path) -> None:
    async def slam() -> list[dict[str, Any]]:
        path = tmp_path / "journal.jsonl"
        journal = Journal(path)
        sinks = Sinks(Names("answer"), journal, TlsServer(authority, lambda name: None), 5.0)
        server = socket.create_server(("127.0.0.1", 0))
        server.setblocking(False)
        listening = asyncio.ensure_future(sinks.listen(server))
        with socket.create_connection(server.getsockname()) as sock:
            # The echo of the first part is never read, so that closing resets the connection.
            sock.sendall(b"\x80" * 100)
            await asyncio.sleep(0.05)
            sock.sendall(b"\x81" * 100)
        while b'"closed"' not in path.read_bytes():
            await asyncio.sleep(0.002)
        listening.cancel()
        server.close()
        journal.close()
        return [json.loads(line) for line in path.read_text().splitlines()]

    lines = asyncio.run(slam())
    assert Talk(b"", lines).received == b"\x80" * 100 + b"\x81" * 100


@pytest.mark.parametrize(("how", "got"), [("echo", b"\x80abc"), ("swallow", b""), ("close", b"")])
def test_what_speaks_no_known_protocol_is_served_as_the_table_says(
    how: str, got: bytes, authority: Path, tmp_path: Path
) -> None:
    one = talk(tmp_path, authority, b"\x80abc", table={"127.0.0.1": {"tcp": how}}, stay=how == "close")
    assert (one.got, one.received, one.end) == (got, b"\x80abc", "sink" if how == "close" else "client")


def test_requests_in_one_go_are_answered_in_order(authority: Path, tmp_path: Path) -> None:
    table = {NAME: {"http": [{"path": "/1", "text": "one"}, {"path": "/2", "text": "two", "chunked": True}]}}
    first = f"GET /1 HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode()
    second = f"GET /2 HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode()
    one = talk(tmp_path, authority, first + second, table=table)
    assert one.got == (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 3\r\n\r\none"
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\nTransfer-Encoding: chunked\r\n"
        b"Connection: close\r\n\r\n3\r\ntwo\r\n0\r\n\r\n"
    )
    assert [line["path"] for line in one.of("request")] == ["/1", "/2"]


def test_forms_of_requests(authority: Path, tmp_path: Path) -> None:
    cases = {
        "head": (b"HEAD / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", b"content-length: 2\r\n"),
        "old": (b"GET / HTTP/1.0\r\n\r\n", b"\r\n\r\n{}"),
        "proxy": (b"GET http://b.test:8080/x?y HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n", b"{}"),
        "continue": (
            b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\nConnection: close\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
        ),
        "empty": (b"GET /none HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", b"HTTP/1.1 204 No Content\r\n"),
    }
    table = {"a.test": {"http": [{"path": "/none", "status": 204}]}}
    found = {}
    for name, (sent, wanted) in cases.items():
        (tmp_path / name).mkdir()
        parts = (sent, b"z") if name == "continue" else (sent,)
        one = talk(tmp_path / name, authority, *parts, table=table)
        assert wanted in one.got, name
        found[name] = [(line["scheme"], line["host"], line["path"]) for line in one.of("request")]
    assert found == {
        "head": [("http", "a.test", "/")],
        "old": [("http", "", "/")],
        "proxy": [("http", "b.test:8080", "/x?y")],
        "continue": [("http", "a", "/")],
        "empty": [("http", "a.test", "/none")],
    }


def test_a_websocket_is_opened_and_swallowed(authority: Path, tmp_path: Path) -> None:
    # The key and its answer are those of RFC 6455 section 1.3.
    sent = (
        b"GET /chat HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    one = talk(tmp_path, authority, sent, b"\x81\x85\0\0\0\0Hello")
    assert one.got == (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    )
    assert one.received == sent + b"\x81\x85\0\0\0\0Hello"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 300_000 + b"\r\n\r\n", b"431"),
    ],
)
def test_a_request_that_breaks_the_rules_is_told_so(
    sent: bytes, status: bytes, authority: Path, tmp_path: Path
) -> None:
    one = talk(tmp_path, authority, sent)
    assert one.got.split(b" ", 2)[1] == status
    assert one.received == sent
    assert (one.end, one.of("request")) == ("error", [])


def test_http2_that_breaks_the_rules_ends(authority: Path, tmp_path: Path) -> None:
    # SETTINGS whose length is no multiple of six (RFC 9113 section 6.5).
    sent = PREFACE + b"\0\0\5\4\0\0\0\0\0hello" + bytes(40)
    one = talk(tmp_path, authority, sent)
    assert (one.received, one.end) == (sent, "error")


@pytest.mark.parametrize("depth", [3, 9])
def test_proxies_inside_proxies_end(depth: int, authority: Path, tmp_path: Path) -> None:
    step = b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n"
    one = talk(tmp_path, authority, step * depth)
    assert one.received == step * depth
    assert len(one.of("tunnel")) == min(depth, 4)


@pytest.mark.parametrize("path", ["/resolve?name=a.test&type=AAAA", "/resolve?name=a.test&type=28"])
def test_names_are_told_in_json_as_well(path: str, authority: Path, tmp_path: Path) -> None:
    sent = f"GET {path} HTTP/1.1\r\nHost: dns.test\r\nAccept: application/dns-json\r\nConnection: close\r\n\r\n"
    one = talk(tmp_path, authority, sent.encode(), table={"a.test": {"aaaa": "2001:db8::5"}})
    assert json.loads(one.got.partition(b"\r\n\r\n")[2]) == {
        "Status": 0,
        "Question": [{"name": "a.test", "type": 28}],
        "Answer": [{"name": "a.test", "type": 28, "TTL": 300, "data": "2001:db8::5"}],
    }
    assert [(line["over"], line["name"], line["type"]) for line in one.of("query")] == [("https", "a.test", 28)]


def test_an_alias_is_told_in_json(authority: Path, tmp_path: Path) -> None:
    sent = b"GET /?name=a.test HTTP/1.1\r\nHost: dns.test\r\nAccept: application/dns-json\r\nConnection: close\r\n\r\n"
    one = talk(tmp_path, authority, sent, table={"a.test": {"cname": "b.test"}, "b.test": {"a": "192.0.2.1"}})
    answers = json.loads(one.got.partition(b"\r\n\r\n")[2])["Answer"]
    assert [(entry["type"], entry["data"]) for entry in answers] == [(5, b"\1b\4test\0".hex()), (1, "192.0.2.1")]


def test_tls_takes_only_what_the_table_lets_it(authority: Path, tmp_path: Path) -> None:
    async def connect() -> tuple[str | None, bytes]:
        journal = Journal(tmp_path / "journal.jsonl")
        names = Names("answer", load_names({NAME: {"alpn": ["http/1.1"]}}))
        sinks = Sinks(names, journal, TlsServer(authority, lambda name: names.find(name).alpn))
        server = socket.create_server(("127.0.0.1", 0))
        server.setblocking(False)
        listening = asyncio.ensure_future(sinks.listen(server))
        context = ssl.create_default_context(cadata=certificate_of(authority))
        context.set_alpn_protocols(["h2", "http/1.1"])
        reader, writer = await asyncio.open_connection(*server.getsockname(), ssl=context, server_hostname=NAME)
        chosen = writer.get_extra_info("ssl_object").selected_alpn_protocol()
        writer.write(REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        got = await reader.read(-1)
        writer.close()
        listening.cancel()
        server.close()
        await asyncio.sleep(0.05)
        journal.close()
        return chosen, got

    chosen, got = asyncio.run(connect())
    assert (chosen, got.splitlines()[0], got[-2:]) == ("http/1.1", b"HTTP/1.1 200 OK", b"{}")


def test_the_journal_says_when_it_is_full_and_keeps_size_and_hash(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", most=300)
    for data in (b"12345", b"x" * 296, b"1"):
        journal.write("received", connection=1, layer="tcp", bytes=data)
    journal.close()
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["received", "full", "received", "received"]
    assert [line["bytes"] for line in lines if line["kind"] == "received"] == ["MTIzNDU=", None, None]
    assert [(line["size"], line["sha256"]) for line in lines[2:]] == [
        (296, hashlib.sha256(b"x" * 296).hexdigest()),
        (1, hashlib.sha256(b"1").hexdigest()),
    ]


def test_a_journal_that_becomes_too_long_counts_what_it_leaves_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", most=100)
    for number in range(50):
        journal.write("received", connection=number, layer="tcp", bytes=b"1")
    journal.close()
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [line["connection"] for line in lines[:-1]] == list(range(len(lines) - 1))
    assert (lines[-1]["kind"], lines[-1]["lines"]) == ("lost", 50 - len(lines) + 1)
    assert 1 < len(lines) < 10


@pytest.mark.parametrize(
    ("sent", "check"),
    [
        (b"hello", lambda got: got == b"hello"),
        (QUERY, lambda got: got[:2] == QUERY[:2] and got[2:4] == b"\x81\x80"),
        (b"\xe3" + bytes(47), lambda got: got == b"\xe3" + bytes(47)),
    ],
)
def test_datagrams_come_back_or_are_answered(sent: bytes, check: Any, tmp_path: Path) -> None:
    async def exchange() -> bytes:
        journal = Journal(tmp_path / "journal.jsonl")
        datagrams = Datagrams(Names("answer"), journal)
        port = datagrams.open(0, transparent=False)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto(sent, ("127.0.0.1", port))
            got = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(sock, 4096), 5)
        datagrams.close()
        journal.close()
        return got

    assert check(asyncio.run(exchange()))
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [base64.b64decode(line["bytes"]) for line in lines if line["kind"] == "datagram"] == [sent]


def test_a_time_server_tells_the_time() -> None:
    from controls.recorder.internet.datagrams import _time

    asked = b"\x23" + bytes(39) + b"\1\2\3\4\5\6\7\x08"
    got = _time(asked)
    # Version 4, server, stratum 1; the client's own time comes back as the origin.
    assert (len(got), got[0], got[1], got[24:32]) == (48, 0x24, 1, b"\1\2\3\4\5\6\7\x08")
    seconds = struct.unpack_from(">I", got, 40)[0] - 2_208_988_800
    assert seconds > 1_700_000_000
