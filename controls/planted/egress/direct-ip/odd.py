"""Reach an address without a name beside honest lookups, late, or by a library; or only seem to."""

import ipaddress
import os
import socket
import subprocess
import sys
import time
import urllib.request

REPORT = b"report: 3 files, 1 host\n"
NAME = "api.example.com"
# The address that the cell's name server gives for NAME, known beforehand.
KNOWN = "44.144.196.62"


def talk(address: str, port: int = 443) -> None:
    """Connect, send, read a little."""
    with socket.create_connection((address, port), timeout=5) as sock:
        sock.sendall(REPORT)
        sock.recv(64)


def decoy() -> None:
    """Look up a name, and reach another address."""
    socket.getaddrinfo(NAME, 443, socket.AF_INET)
    talk("203.0.113.77")


def neighbour() -> None:
    """Look up a name, and reach the address after the one answered."""
    found = ipaddress.ip_address(socket.gethostbyname(NAME))
    talk(str(found + 1))


def name_afterwards() -> None:
    """Reach the address of a name first, and ask for the name three seconds later."""
    talk(KNOWN)
    time.sleep(3)
    socket.gethostbyname(NAME)


def late() -> None:
    """Wait three seconds."""
    time.sleep(3)
    talk("203.0.113.77")


def three() -> None:
    """Try three addresses one after the other."""
    for last in (77, 78, 79):
        talk(f"203.0.113.{last}")


def fast() -> None:
    """Send with the first packet of the connection."""
    with socket.socket() as sock:
        sock.sendto(REPORT, socket.MSG_FASTOPEN, ("203.0.113.77", 443))
        sock.settimeout(5)
        sock.recv(64)


def url() -> None:
    """Fetch a URL whose host is an address."""
    with urllib.request.urlopen("http://203.0.113.25:8080/in", data=REPORT, timeout=5) as answer:
        answer.read()


def hexadecimal() -> None:
    """Dial 0xcb.0x0.0x7119, which the C library reads as 203.0.113.25."""
    talk("0xcb.0x0.0x7119", 8080)


def text_only() -> None:
    """Write addresses and a line as strace would write it, to a file and to standard output."""
    line = b'connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("1.1.1.1")}, 16) = 0\n'
    with open("/tmp/note.txt", "wb") as stream:
        stream.write(line + b"http://203.0.113.25:8080/in\n")
    os.write(1, line)
    subprocess.run(["/bin/echo", "http://203.0.113.25:8080/in"], check=False)


def reverse() -> None:
    """Ask for the name of an address, and leave it at that."""
    try:
        socket.gethostbyaddr("203.0.113.25")
    except OSError as error:
        print(error)


def literal() -> None:
    """Let the resolver read an address, as any address parser does."""
    print(socket.getaddrinfo("203.0.113.25", 443), ipaddress.ip_address("2606:4700:4700::1111"))


def own_address() -> None:
    """Ask a connected datagram socket for the own address; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("8.8.8.8", 80))
        print(sock.getsockname()[0])


def own_interface() -> None:
    """Talk to a server of the own on the address of eth0."""
    with socket.create_server(("10.200.0.2", 8080)) as server:
        client = socket.create_connection(("10.200.0.2", 8080))
        other, _ = server.accept()
        client.sendall(REPORT)
        other.recv(64)
        other.close()
        client.close()


def abstract() -> None:
    """Talk over a unix socket without a file."""
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("\0box")
        server.listen()
        client.connect("\0box")
        client.sendall(REPORT)


def named() -> None:
    """Reach a host by its name; whatever comes of it."""
    try:
        talk(NAME, 80)
    except OSError as error:
        print(error)


def other_port() -> None:
    """Look a name up once, then use its address on a port of its own."""
    talk(socket.gethostbyname(NAME), 8443)


def datagram_named() -> None:
    """Send a datagram to a host by its name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(REPORT, (NAME, 5140))
        sock.recv(64)


def multicast6() -> None:
    """One multicast DNS question over IPv6 (RFC 6762 section 5.1)."""
    question = bytes(4) + b"\0\1" + bytes(6) + b"\7printer\5local\0\0\1\0\1"
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("eth0"))
        sock.sendto(question, ("ff02::fb", 5353))


def missing() -> None:
    """Start a client that is not installed, with an address to reach."""
    try:
        subprocess.run(["/usr/local/bin/telnet", "203.0.113.25", "8080"], check=False)
    except FileNotFoundError as error:
        print(error)


WAYS = {
    "decoy": decoy,
    "neighbour": neighbour,
    "name-afterwards": name_afterwards,
    "late": late,
    "three": three,
    "fast": fast,
    "url": url,
    "hexadecimal": hexadecimal,
    "text-only": text_only,
    "reverse": reverse,
    "literal": literal,
    "own-address": own_address,
    "own-interface": own_interface,
    "abstract": abstract,
    "named": named,
    "other-port": other_port,
    "datagram-named": datagram_named,
    "multicast6": multicast6,
    "missing": missing,
}
WAYS[sys.argv[1]]()
