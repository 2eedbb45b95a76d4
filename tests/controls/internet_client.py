"""A client of the fake internet, run inside a cell: says in JSON what it sent to whom, and what came back.

``python internet_client.py CERTIFICATES ADDRESS4 ADDRESS6 NAME``
"""

import base64
import http.client
import json
import socket
import ssl
import struct
import sys
from typing import Any

import h2.config
import h2.connection
import h2.events

CERTIFICATES, ADDRESS4, ADDRESS6, NAME = sys.argv[1:]
TRUST = ssl.create_default_context(cafile=CERTIFICATES)
EVERY_BYTE = bytes(range(256))
SAID: list[dict[str, Any]] = []


def say(what: str, sent: bytes, got: bytes, port: int, **more: object) -> None:
    SAID.append(
        {
            "what": what,
            "sent": base64.b64encode(sent).decode(),
            "got": base64.b64encode(got).decode(),
            "port": port,
            **more,
        }
    )


def query(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack(">HHHHHH", 0x1234, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def family(address: str) -> str:
    return "ipv6" if ":" in address else "ipv4"


def tcp(address: str) -> None:
    with socket.create_connection((address, 4100), 10) as sock:
        sent = b"\x80" + EVERY_BYTE
        sock.sendall(sent)
        got = b""
        while len(got) < len(sent):
            got += sock.recv(4096)
        say("tcp", sent, got, sock.getsockname()[1], family=family(address))


def udp(address: str) -> None:
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(kind, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        for sent in (EVERY_BYTE, b"", b"\0" * 9000):
            sock.sendto(sent, (address, 4200))
            got, peer = sock.recvfrom(65536)
            assert peer[:2] == (address, 4200)
            say("udp", sent, got, sock.getsockname()[1], family=family(address))


def dns(address: str) -> None:
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    sent = query(NAME, 28 if ":" in address else 1)
    with socket.socket(kind, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        sock.sendto(sent, (address, 53))
        say("dns-udp", sent, sock.recv(4096), sock.getsockname()[1], family=family(address))
    with socket.create_connection((address, 53), 10) as sock:
        framed = len(sent).to_bytes(2, "big") + sent
        sock.sendall(framed[:7])
        sock.sendall(framed[7:])
        say("dns-tcp", framed, sock.recv(4096), sock.getsockname()[1], family=family(address))


def dot(address: str) -> None:
    sent = query(NAME, 1)
    framed = len(sent).to_bytes(2, "big") + sent
    with (
        socket.create_connection((address, 853), 10) as plain,
        TRUST.wrap_socket(plain, server_hostname=NAME) as sock,
    ):
        sock.sendall(framed)
        say("dot", framed, sock.recv(4096), plain_port(sock), family=family(address))


def plain_port(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def doh(address: str) -> None:
    sent = query(NAME, 1)
    with (
        socket.create_connection((address, 443), 10) as plain,
        TRUST.wrap_socket(plain, server_hostname=NAME) as sock,
    ):
        asked = base64.urlsafe_b64encode(sent).rstrip(b"=")
        get = b"GET /dns-query?dns=" + asked + b" HTTP/1.1\r\nHost: " + NAME.encode() + b"\r\n\r\n"
        sock.sendall(get)
        first = document(sock)
        head = f"POST /dns-query HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/dns-message\r\n"
        post = head.encode() + b"Content-Length: " + str(len(sent)).encode() + b"\r\n\r\n" + sent
        sock.sendall(post)
        say("doh", get + post, first + document(sock), plain_port(sock), family=family(address), message=sent.hex())


def document(sock: socket.socket) -> bytes:
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    return answer.read()


def http1(address: str, secure: bool) -> None:
    port = 8443 if secure else 8080
    with socket.create_connection((address, port), 10) as plain:
        sock = TRUST.wrap_socket(plain, server_hostname=NAME) if secure else plain
        first = b"GET /v1/items?a=b HTTP/1.1\r\nHost: " + NAME.encode() + b"\r\nAccept: application/json\r\n\r\n"
        sock.sendall(first)
        got = document(sock)
        head = b"POST /collect HTTP/1.1\r\nHost: " + NAME.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
        second = head + b"100\r\n" + EVERY_BYTE + b"\r\n3\r\nabc\r\n0\r\n\r\n"
        sock.sendall(second)
        got += document(sock)
        say("https1" if secure else "http1", first + second, got, sock.getsockname()[1], family=family(address))
        sock.close()


def http2(address: str, secure: bool) -> None:
    context = ssl.create_default_context(cafile=CERTIFICATES)
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection((address, 9443 if secure else 9080), 10) as plain:
        sock = context.wrap_socket(plain, server_hostname=NAME) if secure else plain
        if isinstance(sock, ssl.SSLSocket):
            assert sock.selected_alpn_protocol() == "h2"
        connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        connection.initiate_connection()
        head = [
            (":method", "POST"),
            (":scheme", "https" if secure else "http"),
            (":authority", NAME),
            (":path", "/big"),
        ]
        connection.send_headers(1, head)
        connection.send_data(1, EVERY_BYTE, end_stream=True)
        sent, got = b"", b""
        ended = False
        while not ended:
            out = connection.data_to_send()
            sock.sendall(out)
            sent += out
            for event in connection.receive_data(sock.recv(65536)):
                if isinstance(event, h2.events.DataReceived):
                    got += event.data
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    ended = True
        out = connection.data_to_send()
        sock.sendall(out)
        say("h2" if secure else "h2c", sent + out, got, sock.getsockname()[1], family=family(address))
        sock.close()


def proxied(address: str) -> None:
    """An HTTP proxy, TLS through it, and the same by SOCKS 5."""
    for kind in ("connect", "socks"):
        with socket.create_connection((address, 3128), 10) as plain:
            if kind == "connect":
                opening = f"CONNECT {NAME}:443 HTTP/1.1\r\nHost: {NAME}:443\r\n\r\n".encode()
                plain.sendall(opening)
                assert plain.recv(4096) == b"HTTP/1.1 200 Connection established\r\n\r\n"
            else:
                target = b"\x05\x01\0\x03" + bytes([len(NAME)]) + NAME.encode() + b"\x01\xbb"
                plain.sendall(b"\x05\x01\0")
                assert plain.recv(2) == b"\x05\0"
                plain.sendall(target)
                assert plain.recv(10) == b"\x05\0\0\x01\0\0\0\0\0\0"
                opening = b"\x05\x01\0" + target
            with TRUST.wrap_socket(plain, server_hostname=NAME) as sock:
                inner = b"GET /through HTTP/1.1\r\nHost: " + NAME.encode() + b"\r\n\r\n"
                sock.sendall(inner)
                say(kind, inner, document(sock), plain_port(sock), family=family(address), opening=opening.hex())


def refused(address: str) -> None:
    """A client that trusts nobody, and one that wants the name of another."""
    for what, context, name in (
        ("untrusting", ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), NAME),
        ("address", TRUST, address),
    ):
        try:
            with (
                socket.create_connection((address, 443), 10) as plain,
                context.wrap_socket(plain, server_hostname=name) as sock,
            ):
                say(what, b"", b"", plain_port(sock), family=family(address), error="")
        except ssl.SSLCertVerificationError as error:
            say(what, b"", b"", 0, family=family(address), error=error.verify_message)


for one in (ADDRESS4, ADDRESS6):
    tcp(one)
    udp(one)
    dns(one)
    dot(one)
    doh(one)
    for inside in (False, True):
        http1(one, inside)
        http2(one, inside)
    proxied(one)
    refused(one)
sys.stdout.write(json.dumps(SAID))
