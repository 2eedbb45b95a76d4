"""Socket addresses as strace prints them, in every style and field order."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache

from mcpdetect.ingest.strace.values import bytes_in, fields, number
from mcpdetect.model.addresses import canonical
from mcpdetect.model.text import text_of

__all__ = ["Address", "family_name", "sockaddr"]

# -X raw prints the number (linux/socket.h)
_FAMILIES = {
    0: "unspec",
    1: "unix",
    2: "inet",
    10: "inet6",
    16: "netlink",
    17: "packet",
    29: "can",
    30: "tipc",
    31: "bluetooth",
    38: "alg",
    40: "vsock",
    44: "xdp",
}
# linux/vm_sockets.h
_CIDS = {"VMADDR_CID_ANY": 0xFFFFFFFF, "VMADDR_CID_HYPERVISOR": 0, "VMADDR_CID_LOCAL": 1, "VMADDR_CID_HOST": 2}
# htons(443)      "\x01\xbb" /* htons(443) */      ETH_P_IP
_CALLED = re.compile(r"(?:htons|htonl)\((\w++)\)\Z", re.ASCII)
_COMMENT = re.compile(r"(.*?) /\* (.*) \*/\Z", re.ASCII | re.DOTALL)
_FAMILY = re.compile(r"\{sa_family=(AF_[A-Z0-9_]++),", re.ASCII)
# if_nametoindex("lo")
_INDEX = re.compile(r'if_nametoindex\(("(?>[^"\\]++|\\.)*+")\)\Z', re.ASCII | re.DOTALL)


@dataclass(slots=True, frozen=True)
class Address:
    """A socket address.

    Attributes:
        family: as in ``SocketConnect.family``.
        address: canonical IP address; ``raw`` as written where it differs.
        port: its port.
        path: unix path, or ``cid:port`` of vsock.
        cut: the text is cut, what is missing is unknown.
    """

    family: str
    address: str | None = None
    port: int | None = None
    path: str | None = None
    raw: str | None = None
    cut: bool = False


def family_name(text: str) -> str:
    """Return the family of ``AF_INET``, ``PF_INET``, ``0x2``, ``0xa /* AF_INET6 */``."""
    code = number(text)
    if code is not None:
        return _FAMILIES.get(code, f"family-{code}")
    return text.partition(" ")[0].removeprefix("AF_").removeprefix("PF_").lower()


@lru_cache(maxsize=4096)
def sockaddr(text: str) -> Address | None:
    """Read a socket address argument, None when it is not decoded (a pointer, NULL)."""
    found = fields(text)
    if "sa_family" not in found:
        # {sa_family=AF_INET, sin_po       the log ends here
        start = _FAMILY.match(text)
        return Address(family_name(start[1]), cut=True) if start is not None else None
    family = family_name(found["sa_family"])
    if family == "inet":
        return _ip(family, _internet4(found.get("sin_addr", "")), _port(found.get("sin_port", "")), "")
    if family == "inet6":
        return _ip(family, _internet6(found), _port(found.get("sin6_port", "")), _zone(found.get("sin6_scope_id", "")))
    if family == "unix":
        return _unix(found.get("sun_path"))
    if family == "vsock":
        cid, port = found.get("svm_cid", ""), number(found.get("svm_port", ""))
        if cid.partition(" ")[0] in _CIDS:
            code: int | None = _CIDS[cid.partition(" ")[0]]
        else:
            code = number(cid)
        known = None if code is None or port is None else f"{code}:{port}"
        return Address(family, port=port, path=known)
    if family == "netlink":
        return Address(family, port=None)
    return Address(family)


def _ip(family: str, written: str | None, port: int | None, zone: str) -> Address:
    if written is None:
        return Address(family, port=port, cut=True)
    try:
        plain = canonical(written)
    except ValueError:
        return Address(family, port=port, cut=True)
    raw = written if plain != written else None
    return Address(family, plain + zone, port, raw=raw and raw + zone)


def _port(text: str) -> int | None:
    match = _CALLED.match(text)
    if match is not None:
        return _checked(number(match[1]))
    comment = _COMMENT.match(text)
    if comment is not None:
        found = _port(comment[2])
        return _port(comment[1]) if found is None else found
    raw = bytes_in(text)
    if raw is not None and len(raw[0]) == 2:
        # sin_port="\x01\xbb"
        return int.from_bytes(raw[0], "big")
    return _checked(number(text))


def _checked(port: int | None) -> int | None:
    return port if port is not None and 0 <= port <= 0xFFFF else None


def _packed(text: str) -> str | None:
    r"""``"\xcb\x00\x71\x07" /* inet_addr("203.0.113.7") */`` of -X raw and verbose."""
    comment = _COMMENT.match(text)
    raw = bytes_in(comment[1] if comment else text)
    if raw is None or len(raw[0]) not in {4, 16}:
        return None
    return str(ipaddress.ip_address(raw[0]))


def _internet4(text: str) -> str | None:
    if text.startswith("inet_addr("):
        found = bytes_in(text[10:].removesuffix(")"))
        return None if found is None else found[0].decode("latin-1")
    return _packed(text)


def _internet6(found: dict[str, str]) -> str | None:
    # inet_pton(AF_INET6, "2001:db8::10", &sin6_addr)
    call = found.get("inet_pton")
    if call is not None:
        parts = call.split(", ")
        inner = bytes_in(parts[1]) if len(parts) > 1 else None
        return None if inner is None else inner[0].decode("latin-1")
    return _packed(found.get("sin6_addr", ""))


def _zone(text: str) -> str:
    comment = _COMMENT.match(text)
    match = _INDEX.match(comment[2] if comment else text)
    if match is not None:
        inner = bytes_in(match[1])
        return "%" + text_of(inner[0]) if inner is not None else ""
    code = number(text)
    return f"%{code}" if code else ""


def _unix(text: str | None) -> Address:
    # sun_path="/run/docker.sock"      sun_path=@"/tmp/.X11-unix/X0"      {sa_family=AF_UNIX}
    if text is None:
        return Address("unix")
    abstract = text.startswith("@")
    found = bytes_in(text.removeprefix("@"))
    if found is None:
        return Address("unix", cut=True)
    return Address("unix", path=("@" if abstract else "") + text_of(found[0]), cut=found[1])
