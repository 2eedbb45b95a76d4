"""A capture that ran and saw nothing but a question for a link address (ARP, RFC 826)."""

from __future__ import annotations

import struct

__all__ = ["QUIET"]

_ARP = bytes.fromhex("ffffffffffff020000000001080600010800060400010200000000010a4d00020000000000000a4d0001")
QUIET = (
    struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + struct.pack("<IIII", 1, 0, len(_ARP), len(_ARP)) + _ARP
)
