"""``nft -j list ruleset``: one JSON document (libnftables-json(5))."""

from __future__ import annotations

from typing import Any

import msgspec

from mcpdetect.errors import Malformed
from mcpdetect.ingest.firewall.nft import Chain, Listing, Problem, Rule, Statement
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of

__all__ = ["read_json_listing"]

_BLOCKING = ("drop", "reject")
_VERDICTS = (*_BLOCKING, "accept", "jump", "goto", "return", "queue", "continue")


def read_json_listing(content: bytes, name: str) -> Listing:
    """Return the listing of a document; places count its objects from 1.

    Raises:
        Malformed: it is no JSON, or not a listing.
    """
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(
            f"is no whole JSON document: {error}"[:200],
            file=name,
            cause="the listing was cut, or holds more than one",
            hint="write it again: nft -j list ruleset",
        ) from error
    objects = document.get("nftables") if isinstance(document, dict) else None
    if not isinstance(objects, list):
        raise Malformed("has no list of nftables objects", file=name, hint="nft -j list ruleset")
    listing = Listing("nft-json")
    for number, item in enumerate(objects, 1):
        where = Where(name, number, unit="record")
        try:
            _object(listing, where, item)
        except (KeyError, TypeError, ValueError, AttributeError):
            listing.problems.append(Problem(where, msgspec.json.encode(item), "an object without what it must have"))
    return listing


def _object(listing: Listing, where: Where, item: dict[str, Any]) -> None:
    ((sort, value),) = item.items()
    if sort == "chain":
        chain = Chain(where, _text(value.get("hook", "")), _text(value.get("policy", "")))
        listing.chains[_key(value, value["name"])] = chain
    elif sort == "counter":
        listing.counters[_key(value, value["name"])] = _number(value["packets"])
    elif sort == "map":
        if any(f'"{word}":' in msgspec.json.encode(value.get("elem", [])).decode() for word in _BLOCKING):
            listing.dropping.add(_key(value, f"@{value['name']}"))
    elif sort == "rule":
        expressions = value["expr"]
        statements = [_statement(expression) for expression in expressions]
        text = msgspec.json.encode([_numberless(expression) for expression in expressions]).decode()
        listing.rules.append(Rule(where, _key(value, value["chain"]), statements, text, _number(value["handle"])))


def _statement(expression: dict[str, Any]) -> Statement:
    ((sort, value),) = expression.items()
    if sort == "counter":
        if isinstance(value, dict):
            return Statement("counter", packets=_number(value["packets"]))
        return Statement("counter", name=_text(value) if value is not None else None)
    if sort == "log":
        prefix = value.get("prefix", "") if value is not None else ""
        return Statement("log", word=_text(prefix))
    if sort in _VERDICTS:
        return Statement("verdict", word=sort)
    if sort == "xt" and value.get("type") == "target":
        target = _text(value["name"]).lower()
        return Statement("log") if target == "log" else Statement("verdict", word=target)
    if sort == "vmap":
        data = value["data"]
        if isinstance(data, str):
            return Statement("vmap", name=data)
        dropping = any(f'"{word}":' in msgspec.json.encode(data).decode() for word in _BLOCKING)
        return Statement("vmap") if dropping else Statement("other")
    return Statement("other")


def _numberless(expression: dict[str, Any]) -> dict[str, Any]:
    return {"counter": None} if isinstance(expression.get("counter"), dict) else expression


def _key(value: dict[str, Any], name: object) -> tuple[str, str, str]:
    return _text(value["family"]), _text(value["table"]), _text(name)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return text_of(value.encode("utf-8", "surrogatepass"))


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(value)
    return value
