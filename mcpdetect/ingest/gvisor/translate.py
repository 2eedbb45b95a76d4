"""From gVisor's words to strace's: the arguments and the result of one call, so that the same handlers read both."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable

from mcpdetect.ingest.gvisor.arguments import SHAPES

__all__ = ["arguments", "bytes_of", "names_destination", "quoted", "remark_of", "result_of"]

_POINTER = re.compile(r"0x[0-9a-f]++", re.ASCII)
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.ASCII | re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_BELL = {ord(char): f"\\{ord(char):03o}" for char in [*map(chr, range(32)), "\x7f", "<", ">", "[", "]", '"', "\\"]}
_QUOTE = {ord(char): f"\\{ord(char):03o}" for char in [*map(chr, range(32)), "\x7f", '"', "\\"]}
# 3 (0x3) (97.624µs)      0 (0x0) errno=2 (no such file or directory) (27.8µs)      0x3 (1.2ms)      1m2.5s
_RESULT = re.compile(
    r"(?:(-?\d{1,20}+) \(0x[0-9a-f]++\)|(0x[0-9a-f]{1,16}))"
    r"(?: errno=(\d{1,5}) \([^()]*+(?:\([^()]*+\)[^()]*+)?+\))?+ \((?:(\d{1,6})h)?+(?:(\d{1,2})m)?+"
    r"(?:(\d{1,6})(?:\.(\d{1,9}))?+(ns|\xc2\xb5s|\xce\xbcs|us|ms|s))?+\)\Z",
    re.ASCII,
)
_UNITS = {"ns": 0, "\xc2\xb5s": 3, "\xce\xbcs": 3, "us": 3, "ms": 6, "s": 9}
# linux/errno.h: what the kernel keeps to itself
_INTERNAL = {512: "ERESTARTSYS", 513: "ERESTARTNOINTR", 514: "ERESTARTNOHAND", 516: "ERESTART_RESTARTBLOCK"}
_VECTOR = re.compile(
    r"\{base=(0x[0-9a-f]++), len=(\d++)(?:, (\"(?>[^\"\\]++|\\.)*+\")(\.\.\.)?+)?+[^{}]*+\}", re.ASCII | re.DOTALL
)
_STRING = re.compile(r'("(?>[^"\\]++|\\.)*+")(\.\.\.)?+', re.DOTALL)
# {Family: AF_INET, Addr: 203.0.113.7, Port: 443}
_INTERNET = re.compile(r"\{Family: AF_INET(6?), Addr: ([0-9a-fA-F:.]*+), Port: (\d{1,5})\}", re.ASCII)
# {Family: AF_UNIX, Addr: "/run/x.sock"}
_UNIX = re.compile(r"\{Family: AF_UNIX, Addr: (\"(?>[^\"\\]++|\\.)*+\")\}", re.DOTALL)
_FAMILY = re.compile(r"\{Family: (AF_\w++|0x[0-9a-f]++)[,}]", re.ASCII)
# {level=SOL_SOCKET, type=SCM_RIGHTS, length=20, content: 5,6}
_RIGHTS = re.compile(r"\{level=SOL_SOCKET, type=SCM_RIGHTS, length=\d++, content: ([\d,]*+)\}", re.ASCII)
_NAME = re.compile(r"0x[0-9a-f]++ \{name=(0x[0-9a-f]++), ", re.ASCII)
_CONTROL = re.compile(r", control=\{.*\Z", re.DOTALL)
# {FD: 0x4 socket:[3], Events: POLLOUT|POLLERR, REvents: POLLOUT}
_POLLED = re.compile(r"\{FD: (0x[0-9a-f]++)[^{}]*?, Events: ([^{},]*+), REvents: ([^{},]*+)\}", re.ASCII)
_VALUE = re.compile(r"0x[0-9a-f]++ \{value=(\d{1,10})\}", re.ASCII)

# Numbers that gVisor leaves as they are, in the names that the handlers know (linux/fcntl.h and relatives).
_FLAGS: dict[tuple[str, int], tuple[tuple[int, str], ...]] = {
    ("unlinkat", 2): ((0x200, "AT_REMOVEDIR"),),
    ("renameat2", 4): ((2, "RENAME_EXCHANGE"),),
    ("dup3", 2): ((0x80000, "O_CLOEXEC"),),
    ("pipe2", 1): ((0x80000, "O_CLOEXEC"),),
    ("memfd_create", 1): ((1, "MFD_CLOEXEC"),),
    ("epoll_create1", 0): ((0x80000, "EPOLL_CLOEXEC"),),
    ("eventfd2", 1): ((0x80000, "EFD_CLOEXEC"),),
    ("inotify_init1", 0): ((0x80000, "IN_CLOEXEC"),),
    ("timerfd_create", 1): ((0x80000, "TFD_CLOEXEC"),),
    ("close_range", 2): ((4, "CLOSE_RANGE_CLOEXEC"),),
    ("io_uring_enter", 3): ((2, "IORING_ENTER_SQ_WAKEUP"),),
    ("sendto", 3): ((0x20000000, "MSG_FASTOPEN"),),
    ("sendmsg", 2): ((0x20000000, "MSG_FASTOPEN"),),
    ("shutdown", 1): (),
}
_COMMANDS = {0: "F_DUPFD", 1: "F_GETFD", 2: "F_SETFD", 3: "F_GETFL", 4: "F_SETFL", 0x406: "F_DUPFD_CLOEXEC"}
_ANY = ".".join("0000")
_SHUT = {0: "SHUT_RD", 1: "SHUT_WR", 2: "SHUT_RDWR"}


def result_of(text: str) -> tuple[str, bool] | None:
    """Return what follows ``= `` in strace's words, and whether the call failed; None when it does not read."""
    match = _RESULT.match(text)
    if match is None:
        return None
    value, code, error, hours, minutes, whole, part, unit = match.groups()
    duration = (int(hours or 0) * 60 + int(minutes or 0)) * 60 * 10**9
    if unit is not None:
        duration += int(whole + (part or "").ljust(9, "0")) * 10 ** _UNITS[unit] // 10**9
    after = f" <{duration // 10**9}.{duration % 10**9:09}>"
    if error is not None:
        name = errno.errorcode.get(int(error)) or _INTERNAL.get(int(error)) or f"E{error}"
        return f"{'?' if int(error) in _INTERNAL else '-1'} {name} ()" + after, True
    number = int(value) if value is not None else int(code, 16)
    return str(number - (1 << 64) if number >= 1 << 63 else number) + after, False


def _one(match: re.Match[str]) -> str:
    byte, short, long, letter = match.groups()
    if byte is not None:
        return chr(int(byte, 16))
    code = short or long
    if code is not None:
        point = int(code, 16)
        valid = point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF
        return (chr(point) if valid else "\ufffd").encode().decode("latin-1")
    return _SIMPLE.get(letter, letter)


def bytes_of(text: str) -> str:
    """Return the bytes, as latin-1 text, of a string that Go quoted (``%q``), its quotes included."""
    return _ESCAPE.sub(_one, text[1:-1])


def quoted(raw: str, *, cut: bool = False) -> str:
    """Return bytes (latin-1 text) as strace writes a string."""
    return f'"{raw.translate(_QUOTE)}"' + ("..." if cut else "")


def _string(text: str) -> str:
    # "hello\n"...
    match = _STRING.search(text)
    return quoted(bytes_of(match[1]), cut=match[2] is not None) if match is not None else "0x0"


def _plain(text: str) -> str:
    return text.removesuffix(" (bad FD)")


def _descriptor(text: str) -> str:
    number, _, name = text.partition(" ")
    if number == "AT_FDCWD":
        shown = number
    else:
        value = int(number, 16) & 0xFFFFFFFF
        shown = str(value - (1 << 32) if value >= 1 << 31 else value)
        if shown == "-100":
            shown = "AT_FDCWD"
    if name.startswith("/"):
        return f"{shown}<{name.removesuffix(' (deleted)').translate(_BELL)}>"
    # socket:[7]      pipe:[28]      host:[1]      anon_inode:[eventpoll]
    return f"{shown}<{name}>" if _KNOWN.match(name) else shown


_KNOWN = re.compile(r"(?:socket|pipe|host|anon_inode):\[[\w.-]*+\]\Z", re.ASCII)


def _path(text: str) -> str:
    pointer, space, path = text.partition(" ")
    if not space or path.startswith("(error decoding path: "):
        return pointer if pointer != "null" else "0x0"
    return quoted(path)


def _buffer(text: str) -> str:
    if not text:
        return '""'
    return _string(text) if '"' in text else text.partition(" ")[0].replace("...", "0x0")


def _vectors(text: str) -> str:
    parts = [
        f"{{iov_base={quoted(bytes_of(data), cut=bool(cut)) if data else base}, iov_len={size}}}"
        for base, size, data, cut in _VECTOR.findall(text)
    ]
    return f"[{', '.join(parts)}]" if parts else text.partition(" ")[0].replace("...", "0x0")


def _strings(text: str) -> str:
    _, space, array = text.partition(" ")
    if not space or not array.startswith("["):
        return "0x0"
    return f"[{', '.join(quoted(bytes_of(item[0])) for item in _STRING.findall(array))}]"


def _pair(text: str) -> str:
    # 0x7f0fcaa16da8 [11 12]
    _, space, array = text.partition(" ")
    return array.replace(" ", ", ") if space and array.startswith("[") else "0x0"


def _polled(text: str) -> str:
    parts = [f"{{fd={int(fd, 16)}, events={events}}}" for fd, events, _ in _POLLED.findall(text)]
    return f"[{', '.join(parts)}]"


def _struct(text: str) -> str:
    if text == "null":
        return "NULL"
    pointer, space, body = text.partition(" ")
    if not space:
        return pointer
    match = _INTERNET.match(body)
    if match is not None:
        six, address, port = match.groups()
        if six:
            inner = f'sin6_port=htons({port}), inet_pton(AF_INET6, "{address or "::"}", &sin6_addr)'
            return f"{{sa_family=AF_INET6, {inner}}}"
        return f'{{sa_family=AF_INET, sin_port=htons({port}), sin_addr=inet_addr("{address or _ANY}")}}'
    match = _UNIX.match(body)
    if match is not None:
        path = bytes_of(match[1])
        if not path:
            return "{sa_family=AF_UNIX}"
        mark = "@" if path.startswith("\0") else ""
        return f"{{sa_family=AF_UNIX, sun_path={mark}{quoted(path.removeprefix(chr(0)))}}}"
    match = _FAMILY.match(body)
    if match is not None:
        return f"{{sa_family={match[1]}}}"
    match = _VALUE.match(text)
    return f"[{match[1]}]" if match is not None else pointer


def _message(text: str) -> str:
    """Return a message header; its name is a pointer only, so the destination is not known here."""
    if " {" not in text:
        return text.partition(" ")[0]
    head = _CONTROL.sub("", text)
    parts = [f"msg_iov={_vectors(head)}" if _VECTOR.search(head) else "msg_iov=[]"]
    control = text[len(head) :]
    rights = [
        f"{{cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[{fds.replace(',', ', ')}]}}"
        for fds in _RIGHTS.findall(control)
    ]
    if rights:
        parts.append(f"msg_control=[{', '.join(rights)}]")
    return f"{{{', '.join(parts)}}}"


_KINDS: dict[str, Callable[[str], str]] = {
    "h": _plain,
    "b": _buffer,
    "a": _struct,
    "v": _vectors,
    "s": _strings,
    "d": _pair,
    "f": _descriptor,
    "p": _path,
    "q": _polled,
}


def names_destination(text: str) -> bool:
    """Return whether a message header (``0x7f {name=0x7f, ...``) has an address, which gVisor does not decode."""
    match = _NAME.match(text)
    return match is not None and int(match[1], 16) != 0


def remark_of(name: str, parts: list[str]) -> str:
    """Return what strace would add to the result of a poll: `` ([{fd=4, revents=POLLOUT}])``; ``""`` otherwise."""
    if name not in {"poll", "ppoll"} or not parts:
        return ""
    ready = [
        f"{{fd={int(fd, 16)}, revents={events}}}"
        for fd, _, events in _POLLED.findall(parts[0])
        if events not in {"0x0", "..."}
    ]
    return f" ([{', '.join(ready)}])" if ready else ""


def arguments(name: str, parts: list[str], *, certain: bool) -> list[str]:
    """Return the arguments of a call in strace's words.

    Args:
        name: the call.
        parts: its arguments as gVisor wrote them.
        certain: whether there was one way only to tell them apart; where there was not, paths count as cut.
    """
    shape = SHAPES[name]
    found: list[str] = []
    for index, part in enumerate(parts):
        kind = shape[index] if index < len(shape) else "h"
        if kind == "a" and name in {"sendmsg", "recvmsg"}:
            text = _message(part)
        elif kind == "f" and name in {"close_range"}:
            text = _descriptor(part).partition("<")[0]
        else:
            text = _KINDS[kind](part)
        if kind == "p" and not certain and text.startswith('"'):
            text += "..."
        found.append(text)
    _by_name(name, found)
    return found


def _number(text: str) -> int | None:
    return int(text, 16) if _POINTER.fullmatch(text) and len(text) < 19 else None


def _code(text: str) -> int:
    code = _number(text)
    return -1 if code is None else code


def _by_name(name: str, found: list[str]) -> None:
    """Give numbers the names that the handlers look for."""
    for index, text in enumerate(found):
        names = _FLAGS.get((name, index))
        code = _number(text)
        if names is not None and code is not None:
            found[index] = "|".join(word for bit, word in names if code & bit) or text
        elif text.startswith("0o"):
            found[index] = "0" + text[2:]
    if name == "clone" and found:
        found[0] = f"flags={found[0]}"
    elif name == "fcntl" and len(found) > 1:
        found[1] = _COMMANDS.get(_code(found[1]), found[1])
    elif name == "shutdown" and len(found) > 1:
        found[1] = _SHUT.get(_code(found[1]), found[1])
    elif name == "poll" and len(found) > 2 and found[2] == "0x0":
        found[2] = "0"
    elif name == "symlink" and found:
        found[0] = found[0].removesuffix("...")
