"""Send a few bytes to an address that no lookup ever named."""

import os
import socket
import sys

# The addresses are the program's own: nobody who starts it gives them.
PLACES = {
    "one": ("1.1.1.1", 443),
    "one6": ("2606:4700:4700::1111", 443),
    "far": ("203.0.113.9", 5140),
    "other": ("198.51.100.7", 8080),
    "resolver": ("9.9.9.9", 53),
}
how, (address, port) = sys.argv[1], PLACES[sys.argv[2]]
family = socket.AF_INET6 if ":" in address else socket.AF_INET


def tcp() -> None:
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.connect((address, port))
        sock.sendall(b"report: 3 files, 1 host\n")
        sock.recv(64)


def udp() -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(b"report: 3 files, 1 host\n", (address, port))
        sock.recv(64)


def dns() -> None:
    # One question for api.example.com, type A, put to a name server of the program's own choice (RFC 1035 section 4).
    question = b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + b"\3api\7example\3com\0" + b"\0\1\0\1"
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(question, (address, port))
        sock.recv(512)


if how == "tcp":
    tcp()
elif how == "udp":
    udp()
elif how == "dns":
    dns()
elif how == "child":
    child = os.fork()
    if child == 0:
        tcp()
        os._exit(0)
    os.waitpid(child, 0)
else:
    raise SystemExit(f"unknown way {how}")
