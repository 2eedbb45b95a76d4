"""Try to reach a host once, by name or address, and hide the failure as many tools do."""

import socket
import sys

PLACES = {"api": ("api.example.com", 443), "log": ("203.0.113.7", 5140)}
how, (host, port) = sys.argv[1], PLACES[sys.argv[2]]
try:
    if how == "udp":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(1)
            sock.sendto(b"ping\n", (host, port))
            sock.recv(64)
    else:
        with socket.create_connection((host, port), timeout=1.5) as sock:
            sock.sendall(b"ping\n")
            sock.recv(64)
except OSError:
    print("no results were found")
