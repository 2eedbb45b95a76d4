"""Talk on this machine and this link only: loopback, or one multicast DNS question."""

import socket
import sys

if sys.argv[1] == "loopback":
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        other, _ = server.accept()
        client.sendall(b"hello\n")
        other.recv(16)
        other.close()
        client.close()
else:
    # RFC 6762 §5.1: a question for a name in .local goes to 224.0.0.251, port 5353.
    question = bytes(4) + b"\0\1" + bytes(6) + b"\7printer\5local\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        sock.sendto(question, ("224.0.0.251", 5353))
