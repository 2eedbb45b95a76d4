r"""Names as logs print them, made into the one form in which names are compared (see ``DnsQuery.name``)."""

from __future__ import annotations

import ipaddress
import re

from mcpdetect.model.addresses import canonical

__all__ = ["address_of", "name_of", "reverse_name"]

_PLAIN = re.compile(rb"[A-Za-z0-9_.-]*+")
_ODD = re.compile(rb"[^A-Za-z0-9_.-]")
# RFC 1035 §5.1: \DDD is a byte, \X any other character
_ESCAPE = re.compile(rb"\\([0-9]{3}|.)|([^A-Za-z0-9_.-])", re.DOTALL)
_MOST = 1024


def name_of(raw: bytes, *, escaped: bool = False) -> tuple[str, str | None]:
    r"""Return a printed name folded, and with its letter case where that differs.

    Args:
        raw: the name, with or without the final dot; ``.`` for the root.
        escaped: the log writes ``\.`` and ``\DDD`` (BIND, CoreDNS); otherwise a backslash stands for itself.
    """
    raw = raw[:_MOST]
    if _PLAIN.fullmatch(raw):
        text = raw.decode("ascii")
    elif escaped:
        text = _ESCAPE.sub(_unescaped, raw).decode("ascii")
    else:
        text = _ODD.sub(_decimal, raw).decode("ascii")
    if text.endswith(".") and not text.endswith("\\."):
        text = text[:-1]
    folded = text.lower()
    return folded, text if text != folded else None


def _decimal(match: re.Match[bytes]) -> bytes:
    return b"\\%03d" % match[0][0]


def _unescaped(match: re.Match[bytes]) -> bytes:
    byte = match[2]
    if byte is None:
        code = match[1]
        value = int(code) if len(code) == 3 else code[0]
        if value > 255:
            return b"\\092" + code
        if value == 0x2E:
            return b"\\."
        byte = bytes([value])
        if _PLAIN.fullmatch(byte):
            return byte
    return b"\\%03d" % byte[0]


def address_of(raw: bytes) -> str | None:
    """Return the canonical spelling of a printed IP address, None where it is none."""
    try:
        return canonical(raw.decode("ascii"))
    except ValueError:  # UnicodeDecodeError is one
        return None


def reverse_name(address: str) -> str:
    """Return the name under which an address is looked up backwards (RFC 1035 §3.5, RFC 3596 §2.5)."""
    return ipaddress.ip_address(address.partition("%")[0]).reverse_pointer
