"""Tiny evidence files, and running the program in this process."""

from __future__ import annotations

import struct
from pathlib import Path

STRACE = (
    '38    1796041192.443879 execve("/srv/server", ["server"], 0x7ffd /* 9 vars */) = 0 <0.0004>\n'
    '38    1796041192.500000 openat(AT_FDCWD</srv>, "/etc/hostname", O_RDONLY|O_CLOEXEC) = 3</etc/hostname> <0.00004>\n'
    '38    1796041192.500100 read(3</etc/hostname>, "box\\n", 4096) = 4 <0.00001>\n'
    "38    1796041192.500200 close(3</etc/hostname>) = 0 <0.00001>\n"
    "38    1796041192.600000 exit_group(0)     = ?\n"
    "38    1796041192.600100 +++ exited with 0 +++\n"
)

DNSMASQ = (
    "Nov 30 12:19:52 dnsmasq[1643]: started, version 2.90 cachesize 150\n"
    "Nov 30 12:19:53 dnsmasq[1643]: query[A] api.example.test from 10.77.0.2\n"
    "Nov 30 12:19:53 dnsmasq[1643]: config api.example.test is 203.0.113.10\n"
)

FIREWALL = (
    "2026-11-30T12:19:52.700000+00:00 box kernel: [   12.345678] DROP: IN= OUT=eth0 SRC=10.0.0.2 DST=203.0.113.9 LEN=60"
    " TOS=0x00 PREC=0x00 TTL=64 ID=7 DF PROTO=TCP SPT=4000 DPT=443 WINDOW=64240 RES=0x00 SYN URGP=0\n"
)

MCP = (
    '{"t": 1796041192.5, "dir": "c2s", "msg": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}\n'
    '{"t": 1796041192.6, "dir": "s2c", "msg": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "add",'
    ' "description": "Adds two numbers.", "inputSchema": {"type": "object"}}]}}}\n'
)


def pcap(at: int = 1_796_041_192, packets: int = 1) -> bytes:
    """Return a capture of UDP packets from 10.0.0.2:4000 to 203.0.113.9:9 (Ethernet, little endian, microseconds)."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    udp = struct.pack(">HHHH", 4000, 9, 8 + 4, 0) + b"ping"
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, b"\x0a\0\0\x02", b"\xcb\0\x71\x09") + udp
    frame = bytes(12) + b"\x08\x00" + ip
    record = struct.pack("<IIII", at, 0, len(frame), len(frame)) + frame
    return header + record * packets


def write(folder: Path) -> dict[str, Path]:
    """Write one file of every kind, and return them by option name."""
    files = {
        "strace": folder / "trace.log",
        "pcap": folder / "capture.pcap",
        "dns": folder / "dnsmasq.log",
        "firewall": folder / "kern.log",
        "mcp": folder / "mcp.jsonl",
    }
    files["strace"].write_text(STRACE)
    files["pcap"].write_bytes(pcap())
    files["dns"].write_text(DNSMASQ)
    files["firewall"].write_text(FIREWALL)
    files["mcp"].write_text(MCP)
    return files
