"""Every fuzz target works: its seeds, and small changes to them, keep the contract; a broken parser is noticed."""

from __future__ import annotations

import random
from pathlib import Path

import one
import pytest
import targets
from targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_its_seeds_and_changes_of_them(name: str) -> None:
    target = TARGETS[name]
    seeds = [data[: target.longest] for data in target.seeds()][:12]
    assert len(seeds) >= 2
    attempt = target.load()
    chance = random.Random(name)  # noqa: S311
    for data in [b"", *seeds, *(one.mutated(chance, seeds, target.longest) for _ in range(60))]:
        attempt(data)


def test_a_parser_that_lets_an_error_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpdetect.ingest.mcp import McpTranscript

    attempt = TARGETS["mcp"].load()

    def broken(self: McpTranscript, wanted: frozenset[str] | None = None) -> None:
        raise KeyError(wanted)

    monkeypatch.setattr(McpTranscript, "events", broken)
    with pytest.raises(KeyError):
        attempt(b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n')


def test_what_breaks_the_contract_is_kept(tmp_path: Path) -> None:
    def attempt(data: bytes) -> None:
        assert b"\x00" not in data

    for part in ("seeds", "found"):
        (tmp_path / part).mkdir()
    (tmp_path / "seeds" / "a").write_bytes(b"abc")
    target = targets.Target(lambda: attempt, lambda: iter([b"abc"]))
    with pytest.raises(AssertionError):
        one.unguided(target, 60, 1, tmp_path)
    (kept,) = (tmp_path / "found").iterdir()
    assert b"\x00" in kept.read_bytes()
