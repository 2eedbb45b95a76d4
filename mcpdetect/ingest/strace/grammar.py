"""The shape of strace's text: arguments, strings, descriptor decorations, results. Every pattern is linear.

Text is handled as latin-1: one character stands for one byte, so offsets and contents are exact.
"""

from __future__ import annotations

import re

__all__ = [
    "ARGUMENT",
    "DECORATION",
    "QUICK",
    "QUICK_PLAIN",
    "RESULT",
    "STRING",
    "split_arguments",
    "split_call",
    "unescape",
]

# "/etc/passwd"   "a\"b) = 3\n"   "cut"...
STRING = r'"(?>[^"\\]++|\\.)*+"(?:\.\.\.)?+'
# <UNIX-STREAM:[382734->382727,"/tmp/w/u>s,k"]>   <TCPv6:[[::1]:53330->[::1]:45581]>   <anon_inode:[eventpoll]>
_SOCKET_DECORATION = rf"<[A-Za-z][\w-]*+:\[(?>[^\[\]\"]++|{STRING}|\[[^\[\]\"]*+\])*+\]>"
# </etc/passwd>   </dev/null<char 1:3>>   <anon_inode:inotify>   </tmp/a\76b>
_PATH_DECORATION = r"<(?>[^<>\\]++|\\.)*+(?:<[^<>]*+>)?+>"
DECORATION = rf"(?:{_SOCKET_DECORATION}|{_PATH_DECORATION})"

_DEPTH = 12
_PLAIN = rf'[^"\[\]{{}}()<]++|{STRING}|{DECORATION}|<'


def _nested(depth: int) -> str:
    inner = _PLAIN
    for _ in range(depth):
        inner = rf"{_PLAIN}|[\[{{(](?>{inner})*+[\]}})]"
    return inner


# {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("203.0.113.7")}
ARGUMENT = rf'(?>[^,"\[\]{{}}()<]++|,(?! )|{STRING}|{DECORATION}|<|[\[{{(](?>{_nested(_DEPTH)})*+[\]}})])*+'

_ARGUMENT = re.compile(rf"({ARGUMENT})(?:, |$)", re.ASCII)
_WHOLE = re.compile(rf"{ARGUMENT}(?>, {ARGUMENT})*+", re.ASCII)
_LONG = 4096  # beyond this a text that does not split is refused at its first fault, not searched to its end
# 3, "x) = 3", 5) = 5      0) =  ?
_TO_RESULT = re.compile(rf"(?>[^\"<)]++|{STRING}|{DECORATION}|<|\)(?! *+= ))*+\)( *+= )", re.ASCII)

RESULT = re.compile(
    r"(?:(?P<value>-?\d++|0x[0-9a-f]++)|\?)"
    # = 6</srv/app/data.json>   = 3</tmp/x>(deleted)
    rf"(?:(?P<decoration>{DECORATION})(?:\(deleted\))?+)?+"
    # = -1 ENOENT (No such file or directory)   = ? ERESTARTSYS (To be restarted if SA_RESTART is set)
    r"(?: (?P<error>E[A-Z0-9_]++) \([^()]*+(?:\([^()]*+\)[^()]*+)*+\))?+"
    # = 1 ([{fd=3, revents=POLLOUT}])   = 0 (Timeout)   = ? <unavailable>   = 2 (in [3 4], left {tv_sec=0})   (INJECTED)
    r"(?P<note>(?: \((?>[^\"()<]++|" + STRING + "|" + DECORATION + r"|<|\([^()]*+\))*+\)| <unavailable>)*+)"
    # <0.000014>
    r"(?: <(?P<duration>\d++\.\d++)>)?+ *+\Z",
    re.ASCII,
)
"""What may follow ``= ``: number, decoration, errno, remark, duration."""

QUICK = re.compile(
    # AT_FDCWD</srv>, "a.js", O_RDONLY|O_CLOEXEC) = 3</srv/a.js> <0.000010>      3, "x", 64) = 1
    rf"([\w-]++(?:{DECORATION})?+), ({STRING}), ([^\"()\[\]{{}}<]*+)\) *+= "
    rf"(?:(-?\d++)|\?)(?:({DECORATION})(?:\(deleted\))?+)?+(?: (E[A-Z0-9_]++) \([^()]*+\))?+(?: <(\d++\.\d++)>)?+\Z",
    re.ASCII,
)
"""The commonest shape of a call in one match: a descriptor, a string, plain arguments, result, duration."""

_PLAIN_DECORATION = r"<(?:/[^>]*+|[A-Za-z]\w*+(?:-\w++)?+:\[[^\]]*+\])>"
QUICK_PLAIN = re.compile(
    rf"([\w-]++(?:{_PLAIN_DECORATION})?+), (\"[^\"]*+\"(?:\.\.\.)?+), ([\w |,-]*+)\) *+= "
    rf"(?:(-?\d++)|\?)(?:({_PLAIN_DECORATION}))?+(?: (E[A-Z0-9_]++) \([^)]*+\))?+(?: <(\d++\.\d++)>)?+\Z",
    re.ASCII,
)
"""``QUICK`` for a line without any backslash, in which no string holds a quote and no path a bracket."""

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([0-7]{1,3})|(.))", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "a": "\a", "b": "\b", "e": "\x1b"}


def _one(match: re.Match[str]) -> str:
    code, octal, letter = match.groups()
    if code is not None:
        return chr(int(code, 16))
    if octal is not None:
        return chr(int(octal, 8) & 0xFF)
    return _SIMPLE.get(letter, letter)


# what Python's codec reads differently: \\777, \\u0041, \\e
_ODD = re.compile(r"\\(?:[4-7][0-7]{2}|[^0-7xntrvfab\"\\])", re.DOTALL)


def unescape(text: str) -> str:
    r"""Return the bytes, as latin-1 text, that strace wrote as ``text``; an octal escape has at most three digits."""
    if "\\" not in text:
        return text
    if _ODD.search(text) is None:
        try:
            return text.encode("latin-1").decode("unicode_escape")
        except UnicodeDecodeError:
            pass  # \\x without two digits
    return _ESCAPE.sub(_one, text)


def split_arguments(text: str) -> list[str] | None:
    """Split at the commas of the outermost level; None when brackets or quotes do not close."""
    if not text:
        return []
    if len(text) > _LONG and _WHOLE.fullmatch(text) is None:
        return None
    parts: list[str] = _ARGUMENT.findall(text)
    if parts and not parts[-1]:
        parts.pop()
    return parts if ", ".join(parts) == text else None


def split_call(rest: str) -> tuple[str, str] | None:
    """Split what follows ``name(`` into the arguments' text and the text after ``= ``; None without a result."""
    at = rest.find(" = ")
    if at >= 0 and rest.rfind(" = ") == at:
        arguments = rest[:at].rstrip(" ")
        if arguments.endswith(")"):
            return arguments[:-1], rest[at + 3 :]
    match = _TO_RESULT.match(rest)
    if match is None:
        return None
    end = match.start(1) - 1
    return rest[:end], rest[match.end() :]
