"""The catalogue of controls: every file read strictly, every case complete, every category with both sides."""

from collections import Counter
from pathlib import Path

import pytest

from controls.catalog import PLANTED, Control, controls, load_control
from controls.recorder.denial import DENIALS
from controls.recorder.internet import DNS_MODES
from mcpdetect.errors import ConfigError
from mcpdetect.labels.model import TRUTHS

ALL = controls()
PROGRAMS = {
    "/bin/sh",
    "/lib64/ld-linux-x86-64.so.2",
    *(f"/usr/bin/{name}" for name in ("bash", "curl", "java", "node", "openssl", "perl", "python3", "ruby", "wget")),
}
"""What a variant may run besides programs of its own."""
MORE = {
    "egress/direct-ip": {"bash", "curl", "go", "java", "nc", "openssl", "perl", "ruby", "sh"},
    "mcp/exfil-instruction": {"go", "ruby"},
    "secrets/canary-read": {"bash", "go", "java", "perl", "ruby"},
}
"""Runtimes in which a control also fires and, but for what has no look-alike, stays silent."""


def test_every_category_has_its_controls() -> None:
    assert [control.id for control in ALL] == [
        "drift/behaviour",
        "egress/direct-ip",
        "egress/unexplained-host",
        "mcp/annotation-mismatch",
        "mcp/drift",
        "mcp/exfil-instruction",
        "mcp/hidden-text",
        "mcp/output-injection",
        "mcp/output-nondeterminism",
        "mcp/output-rewrite",
        "mcp/path-escape",
        "mcp/schema-conformance",
        "mcp/secret-in-output",
        "mcp/shadowing",
        "mcp/tool-poisoning",
        "network/blocked",
        "secrets/canary-read",
    ]


@pytest.mark.parametrize("control", ALL, ids=lambda control: str(control.id))
def test_a_control_fires_and_stays_silent_in_several_runtimes(control: Control) -> None:
    for truth in ("fires", "silent"):
        runtimes = {one.axes["runtime"] for one in control.variants.values() if one.truth == truth}
        acts = any(one.speech is not None and "deeds" in one.speech for one in control.variants.values())
        least = {"python"} if acts else {"python", "node"} if control.id.startswith("mcp/") else {"python", "node", "c"}
        assert runtimes >= least, truth


@pytest.mark.parametrize("control", [one for one in ALL if one.id in MORE], ids=lambda control: str(control.id))
def test_a_control_is_recorded_in_many_runtimes(control: Control) -> None:
    found = {
        truth: {one.axes["runtime"] for one in control.variants.values() if one.truth == truth}
        for truth in ("fires", "silent")
    }
    assert MORE[control.id] <= found["fires"]
    assert MORE[control.id] <= found["silent"]


def test_each_side_has_so_many_cases_that_a_count_means_something() -> None:
    counts = {control.id: Counter(one.truth for one in control.variants.values()) for control in ALL}
    least = {"egress/direct-ip": (80, 40), "mcp/exfil-instruction": (40, 65), "secrets/canary-read": (80, 45)}
    found = {name: (counts[name]["fires"], counts[name]["silent"]) for name in least}
    assert {name: (max(found[name][0], one), max(found[name][1], two)) for name, (one, two) in least.items()} == found


@pytest.mark.parametrize("control", ALL, ids=lambda control: str(control.id))
def test_a_variant_is_what_its_name_and_axes_say(control: Control) -> None:
    assert control.variants
    subject = control.id.replace("/", ".")
    for name, variant in control.variants.items():
        assert variant.name == name
        if variant.speech is None:
            assert name.startswith(variant.axes["runtime"] + "-")
            assert variant.expect == {subject: TRUTHS[variant.truth]}
        assert variant.denial is None or variant.denial in DENIALS
        assert variant.dns in DNS_MODES
        if "denial" in variant.axes:
            assert variant.axes["denial"] == (variant.denial or "none")
        for source in variant.build:
            assert (control.folder / source).is_file()
        if variant.expectations:
            assert (control.folder / variant.expectations).is_file()
        program = variant.run[0]
        assert program in PROGRAMS or program.startswith("{control}/")


def test_every_denial_is_recorded_by_some_control() -> None:
    used = Counter(variant.denial for control in ALL for variant in control.variants.values())
    assert set(DENIALS) <= set(used)


def test_every_program_is_used_by_some_variant() -> None:
    checked = 0
    for control in ALL:
        words = " ".join(
            " ".join((*variant.run, *variant.build, variant.expectations or "", variant.approved or ""))
            for variant in control.variants.values()
        )
        for path in control.folder.rglob("*"):
            if path.is_file() and path.name not in ("control.yaml", "texts.yaml") and "__pycache__" not in path.parts:
                assert path.relative_to(control.folder).as_posix() in words, path
                checked += 1
    assert checked > 15


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("truth: fires", "truth: often", "truth is fires, silent or blind"),
        ("truth: fires", "truht: fires", "unknown key"),
        ("axes:", "axis:", "unknown key"),
        ("plants:", "plans:", "unknown key"),
    ],
)
def test_a_wrong_control_is_an_error(tmp_path: Path, old: str, new: str, problem: str) -> None:
    text = (PLANTED / "egress/direct-ip/control.yaml").read_text()
    (tmp_path / "control.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_control(tmp_path)
    assert caught.value.problem == problem
