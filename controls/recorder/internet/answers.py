"""What the HTTP servers of the fake internet answer: the pages of a variant's table, else what the client accepts."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from controls.recorder.errors import RecorderError

__all__ = ["Page", "Reply", "Request", "TableError", "load_pages", "page_for"]

_KEYS = {"path", "method", "status", "type", "json", "text", "base64", "headers", "chunked"}
_BODIES = ("json", "text", "base64")
_HTML = (
    b"<!doctype html>\n<html lang=en><head><title>A page</title></head>"
    b"<body><h1>A page</h1><p>Some text.</p></body></html>\n"
)


class TableError(RecorderError):
    """Something is wrong with the table of names; says what, where in it, and the value.

    Args:
        problem: one sentence without a full stop.
        place: keys and indexes from the table's root, with slashes between.
        value: the value, shortened.
    """

    def __init__(self, problem: str, *, place: str, value: str = "") -> None:
        super().__init__(f"{place}: {problem}{f': {value}' if value else ''}")
        self.problem, self.place, self.value = problem, place, value


@dataclass(frozen=True, slots=True)
class Request:
    """One request as a client sent it.

    Attributes:
        protocol: ``http/1.1`` (1.0 too) or ``h2``.
        scheme: ``http`` or ``https``.
        method, host, path: as written; the path with its query.
        headers: in order, names in lower case.
        body: whole.
    """

    protocol: str
    scheme: str
    method: str
    host: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        """Return the first value of a header, ``""`` where there is none."""
        return next((value for key, value in self.headers if key == name), "")


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; ``length`` says that its length is known beforehand, else it is sent in pieces."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    length: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """What one path answers.

    Attributes:
        path: shell pattern for the path without its query.
        method: in capitals, None for every one.
        reply: the answer.
    """

    path: str
    method: str | None
    reply: Reply


def load_pages(data: object, place: str) -> tuple[Page, ...]:
    """Return the pages that plain values describe.

    Args:
        data: a list of mappings of ``path`` (a shell pattern; ``*`` when missing), ``method``, ``status`` (200),
            ``type`` (content type), one of ``json``, ``text`` and ``base64``, ``headers``, ``chunked``.
        place: where they stand, for errors.

    Raises:
        TableError: a key or a value is wrong; it names the place.
    """
    if not isinstance(data, list):
        raise TableError("must be a list of pages", place=place, value=repr(data)[:80])
    return tuple(_page(entry, f"{place}/{at}") for at, entry in enumerate(data))


def _page(entry: object, place: str) -> Page:
    if not isinstance(entry, dict):
        raise TableError("must be a mapping", place=place, value=repr(entry)[:80])
    unknown = sorted(set(entry) - _KEYS)
    if unknown:
        raise TableError(f"unknown key; there are {', '.join(sorted(_KEYS))}", place=place, value=unknown[0])
    given = [key for key in _BODIES if key in entry]
    if len(given) > 1:
        raise TableError(f"has {given[0]} and {given[1]}; a page has one body", place=place)
    status = entry.get("status", 200)
    if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:
        raise TableError("must be between 200 and 599", place=f"{place}/status", value=repr(status))
    kind, body = _body(entry, place)
    headers = [("content-type", str(entry.get("type", kind)))]
    headers += [(str(name).lower(), str(value)) for name, value in (entry.get("headers") or {}).items()]
    method = entry.get("method")
    return Page(
        path=str(entry.get("path", "*")),
        method=None if method is None else str(method).upper(),
        reply=Reply(status, tuple(headers), body, not entry.get("chunked", False)),
    )


def _body(entry: dict[str, Any], place: str) -> tuple[str, bytes]:
    if "json" in entry:
        return "application/json", json.dumps(entry["json"]).encode()
    if "base64" in entry:
        try:
            return "application/octet-stream", base64.b64decode(str(entry["base64"]), validate=True)
        except binascii.Error as error:
            raise TableError("is no base64", place=f"{place}/base64", value=str(entry["base64"])[:80]) from error
    text = str(entry.get("text", ""))
    return ("text/html; charset=utf-8" if text.startswith("<") else "text/plain; charset=utf-8"), text.encode()


def page_for(request: Request, pages: Sequence[Page]) -> Reply:
    """Return the answer to a request: the first page that fits it, else a document of a type the client accepts."""
    path = urlsplit(request.path).path or "/"
    for page in pages:
        if page.method in (None, request.method) and fnmatch.fnmatchcase(path, page.path):
            return page.reply
    accepted = request.header("accept").lower()
    if "html" in accepted:
        return Reply(200, (("content-type", "text/html; charset=utf-8"),), _HTML)
    if accepted.startswith("text/plain"):
        return Reply(200, (("content-type", "text/plain; charset=utf-8"),), b"ok\n")
    return Reply(200, (("content-type", "application/json"),), b"{}")
