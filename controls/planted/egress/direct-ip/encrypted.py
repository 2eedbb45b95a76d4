"""Speak TLS: to an address that no lookup named, to a host by its name, or to name servers that answer in secret."""

import http.client
import socket
import ssl
import struct
import sys

ADDRESS = "203.0.113.20"
RESOLVER = "9.9.9.9"
DNS_HOST = "dns.example.net"
HOST = "api.example.com"
CONTEXT = ssl.create_default_context()


def post(target: str, path: str, body: bytes, kind: str) -> bytes:
    connection = http.client.HTTPSConnection(target, timeout=10, context=CONTEXT)
    connection.request("POST", path, body, {"Content-Type": kind})
    answer = connection.getresponse().read()
    connection.close()
    return answer


def question(name: str) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return b"\0\0\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"


def address_in(answer: bytes) -> str:
    """Return the one IPv4 address that ends an answer (RFC 1035 section 4.1.3)."""
    assert struct.unpack_from(">HH", answer, 4) == (1, 1)
    return socket.inet_ntoa(answer[-4:])


def secret_lookup(resolver: str) -> str:
    """DNS over HTTPS (RFC 8484)."""
    return address_in(post(resolver, "/dns-query", question(HOST), "application/dns-message"))


def tls_lookup(resolver: str) -> str:
    """DNS over TLS (RFC 7858)."""
    asked = question(HOST)
    with (
        socket.create_connection((resolver, 853), 10) as plain,
        CONTEXT.wrap_socket(plain, server_hostname=resolver) as sock,
    ):
        sock.sendall(len(asked).to_bytes(2, "big") + asked)
        return address_in(sock.recv(4096)[2:])


def contact(address: str) -> None:
    """Contact an address as the host it belongs to, which the client's hello claims."""
    with (
        socket.create_connection((address, 443), 10) as plain,
        CONTEXT.wrap_socket(plain, server_hostname=HOST) as sock,
    ):
        sock.sendall(b"GET /status HTTP/1.1\r\nHost: " + HOST.encode() + b"\r\nConnection: close\r\n\r\n")
        sock.recv(4096)


def silent(address: str) -> None:
    """Contact an address and name nobody."""
    with socket.create_connection((address, 8443), 10) as sock:
        sock.sendall(b"report: 3 files, 1 host\n")
        sock.recv(64)


WAYS = {
    "address": lambda: post(ADDRESS, "/collect", b"report: 3 files, 1 host\n", "text/plain"),
    "named": lambda: post(HOST, "/collect", b"report: 3 files, 1 host\n", "text/plain"),
    "doh-address": lambda: secret_lookup(RESOLVER),
    "doh-only": lambda: secret_lookup(DNS_HOST),
    "doh-claimed": lambda: contact(secret_lookup(DNS_HOST)),
    "doh-silent": lambda: silent(secret_lookup(DNS_HOST)),
    "dot-only": lambda: tls_lookup(DNS_HOST),
    "dot-claimed": lambda: contact(tls_lookup(DNS_HOST)),
    "dot-silent": lambda: silent(tls_lookup(DNS_HOST)),
}
WAYS[sys.argv[1]]()
