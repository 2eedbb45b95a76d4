"""Try an address by TCP, an address by UDP and a host by name, one after the other, and hide every failure."""

import socket
import sys

patience = float(sys.argv[1])


def tcp(host: str) -> None:
    with socket.create_connection((host, 443), timeout=patience) as sock:
        sock.sendall(b"ping\n")
        sock.recv(64)


def udp(host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.5)
        sock.sendto(b"ping\n", (host, 5140))
        sock.recv(64)


for attempt, host in ((tcp, "203.0.113.7"), (udp, "203.0.113.7"), (tcp, "api.example.com")):
    try:
        attempt(host)
    except OSError:
        print("no results were found")
