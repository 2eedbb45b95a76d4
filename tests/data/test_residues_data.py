"""The residues file: complete, sourced, and read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpdetect.data.residues import KINDS, Residue, ResidueCall, residues
from mcpdetect.errors import ConfigError
from mcpdetect.model.kinds import EVENT_TYPES

ENTRY = """\
residues:
  - id: helper
    what: helper
    text: a helper was asked
    sockets: ["/run/*.sock"]
    calls: [{name: bpf, words: [BPF_PROG_LOAD]}]
    lowers: {syscalls: files}
    source: unix(7)
"""


def named(residue: Residue) -> bool:
    patterns = (residue.sockets, residue.services, residue.writes, residue.opens)
    rest = (residue.calls, residue.families, residue.hosts, residue.ports)
    return any(one.pattern != r"(?!)" for one in patterns) or any(rest) or residue.helpers or residue.helpers_loopback


def test_every_shipped_residue_says_what_it_is_known_by_and_what_it_lowers() -> None:
    every = residues()
    assert len(every) == len({one.id for one in every}) == 13
    for one in every:
        assert named(one), one.id
        assert len(one.text) > 20
        assert "syscalls" in one.lowers


def test_the_groups_hold_kinds_of_events() -> None:
    assert {kind.removeprefix("data:") for kinds in KINDS.values() for kind in kinds} <= EVENT_TYPES.keys()
    assert set(KINDS["acts"]) >= {*KINDS["files"], *KINDS["network"]}
    assert set(KINDS["network"]) >= set(KINDS["names"])


def test_an_entry_is_read(tmp_path: Path) -> None:
    path = tmp_path / "residues.yaml"
    path.write_text(ENTRY)
    (one,) = residues(path)
    assert (one.id, one.what, one.text, one.calls) == (
        "helper",
        "helper",
        "a helper was asked",
        (ResidueCall("bpf", ("BPF_PROG_LOAD",)),),
    )
    assert one.lowers == {"syscalls": ("file.open", "file.read", "file.change", "file.probe")}
    assert one.sockets.fullmatch("/run/a.sock")
    assert not one.sockets.fullmatch("/run/a/b.sock")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("syscalls: files", "syscalls: all", "is no group of event kinds; groups are files, names, network, acts"),
        ("syscalls: files", "calls: files", "unknown key"),
        ("name: bpf", "name: BPF()", "is no system call"),
        ("    source: unix(7)\n", "", "the key 'source' is missing"),
        ("residues:\n", f"residues:\n{ENTRY.removeprefix('residues:')[1:]}", "a residue is given twice"),
    ],
)
def test_a_mistake_is_an_error(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = tmp_path / "residues.yaml"
    path.write_text(ENTRY.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        residues(path)
    assert problem in str(caught.value)
