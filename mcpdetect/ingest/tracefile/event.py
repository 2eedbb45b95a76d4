"""One event's JSON text to an event: strict, with addresses in the one spelling by which they are compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import msgspec

from mcpdetect.model.addresses import canonical
from mcpdetect.model.event import Event
from mcpdetect.model.kinds import EVENT_TYPES
from mcpdetect.model.vocabulary import CHANNELS, Channel
from mcpdetect.model.wire import Refused, decoder

__all__ = ["SPOKEN", "BadEvent", "event_of", "is_last_line", "reader_of"]

Reader = Callable[[bytes], Event]

_LONGEST_ADDRESS = 64
# Fields that detectors compare as addresses, and fields that hold one where the evidence shows one.
_ADDRESSES = ("address",)
_MAYBE_ADDRESSES = ("source", "client", "server")
SPOKEN = frozenset(kind for kind, model in EVENT_TYPES.items() if "seen_in" in model.__dataclass_fields__)
"""Kinds whose events say themselves which channel showed them."""


@dataclass(slots=True)
class BadEvent(Exception):
    """An element of the events that is no event of the model.

    Attributes:
        what: ``unparsed`` or ``unknown-kind``, as in ``Loss.what``.
        reason: why, with the pointer and value concerned.
        kind: its kind, None where that could not be told or trusted.
        channel: its channel, None likewise.
    """

    what: str
    reason: str
    kind: str | None = None
    channel: Channel | None = None


class _Peek(msgspec.Struct):
    kind: msgspec.Raw = msgspec.Raw(b"null")
    seen_in: msgspec.Raw = msgspec.Raw(b"null")
    observations: msgspec.Raw = msgspec.Raw(b"null")


_peek = msgspec.json.Decoder(_Peek).decode


@cache
def reader_of(kind: str, trusted: bool) -> Reader:
    """Return the decoder of one kind; it raises ``Refused``. ``trusted`` leaves addresses as they are."""
    model = EVENT_TYPES[kind]
    decode = decoder(model)
    fields = {field.name for field in dataclasses.fields(model)}
    names = [name for name in _ADDRESSES if name in fields]
    maybe = [name for name in _MAYBE_ADDRESSES if name in fields and (kind, name) != ("dns.answer", "source")]
    if trusted or not (names or maybe):
        return decode

    def read(raw: bytes) -> Event:
        event = decode(raw)
        for name in names:
            _settle(event, name, must=True)
        for name in maybe:
            _settle(event, name, must=False)
        return event

    return read


def _settle(event: Event, name: str, *, must: bool) -> None:
    value = getattr(event, name)
    if not value:
        return
    try:
        spelled = canonical(value) if len(value) <= _LONGEST_ADDRESS else ""
    except ValueError:
        spelled = ""
    if spelled == value:
        return
    if spelled:
        setattr(event, name, spelled)
        if must and getattr(event, "raw_address", "") is None:
            event.raw_address = value  # type: ignore[attr-defined]  # only socket.connect has it
    elif must:
        raise Refused("is no IP address", f"/{name}", msgspec.json.encode(value[:_LONGEST_ADDRESS]).decode())


def is_last_line(text: bytes) -> bool:
    """Return whether a line of JSON lines is the one that holds the observations."""
    try:
        peeked = _peek(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return bytes(peeked.observations) != b"null" and bytes(peeked.kind) == b"null"


def event_of(raw: bytes, trusted: bool) -> Event:
    """Return the event that a JSON text of any layout stands for.

    Raises:
        BadEvent: it is none.
    """
    try:
        peeked = _peek(raw)
        kind: object = msgspec.json.decode(peeked.kind)
        spoken: object = msgspec.json.decode(peeked.seen_in)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadEvent("unparsed", f"is no JSON object: {error}"[:300]) from None
    if not isinstance(kind, str) or kind not in EVENT_TYPES:
        shown = bytes(peeked.kind)[:60].decode("utf-8", "backslashreplace")
        raise BadEvent("unknown-kind" if isinstance(kind, str) else "unparsed", f"/kind: {shown} is no event kind")
    try:
        return reader_of(kind, trusted)(raw)
    except Refused as error:
        raise BadEvent("unparsed", _told(error), kind, _channel(kind, spoken)) from None


def _told(error: Refused) -> str:
    value = f" ({error.value})" if error.value is not None else ""
    return f"{error}{value}"


def _channel(kind: str, spoken: object) -> Channel | None:
    if kind not in SPOKEN:
        return EVENT_TYPES[kind].channel
    return next((channel for channel in CHANNELS if channel == spoken), None)
