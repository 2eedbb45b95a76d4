"""Fetch one document from a named host."""

import socket
import sys

HOSTS = {
    "collector": "collector.example.net",
    "suffix": "api.example.com.collector.test",
    "api": "api.example.com",
    "mirror": "eu.mirror.example.com",
}
host, port = HOSTS[sys.argv[1]], 80
for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
    with socket.socket(family, kind, protocol) as sock:
        sock.settimeout(5)
        try:
            sock.connect(address)
        except OSError:
            continue
        sock.sendall(f"GET /status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        sock.recv(256)
    break
