"""A set of wanted kinds with texts: what keeps the texts, and what makes it a plain set again."""

from __future__ import annotations

from mcpdetect.model.wanted import Wanted

KINDS = {"file.open", "file.probe", "mcp.message"}


def test_it_is_the_set_of_its_kinds_and_holds_the_texts_of_those() -> None:
    wanted = Wanted(KINDS, {"file.probe": {"/.env"}, "file.read": {"x"}})
    assert wanted == frozenset(KINDS)
    assert wanted.texts == {"file.probe": frozenset({"/.env"})}


def test_without_some_kinds_the_texts_of_the_others_stay() -> None:
    wanted = Wanted(KINDS, {"file.probe": {"/.env"}, "file.open": {"y"}})
    less = wanted - {"mcp.message", "file.open"}
    assert isinstance(less, Wanted)
    assert (less, less.texts) == (frozenset({"file.probe"}), {"file.probe": frozenset({"/.env"})})


def test_whatever_is_added_gives_a_set_without_texts() -> None:
    wanted = Wanted(KINDS, {"file.probe": {"/.env"}})
    for other in (wanted | {"file.read"}, {"file.read"} | wanted, wanted.union({"file.probe"}), frozenset({*wanted})):
        assert not isinstance(other, Wanted)
        assert not hasattr(other, "texts")
