"""The three faults that no claim may have: each control fires, its look-alike is silent, and without evidence both are
``not_observable``, recorded anew in either shell.

Egress judged by names alone; blocked attempts known by one error number; an innocent text accused for a part of a word.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from controls.catalog import controls
from controls.recorder.errors import RecorderError
from controls.recorder.microvm.image import image_folder
from controls.recorder.microvm.shell import MicroVM
from controls.recorder.record import record
from controls.recorder.shells import Netns, Shell
from controls.recorder.tools import missing
from controls.verifying import differences
from mcpdetect.api import check
from mcpdetect.labels.loader import load_label
from mcpdetect.model.result import CheckResult

ROOT = Path(__file__).parents[2]
KNOWN = {control.id: control for control in controls()}
# check: the control that fires, its look-alike that stays silent, the channels that decide it, and one that does not.
FAULTS = {
    # Data goes straight to 1.1.1.1, and no name is asked for; the same with a name that was.
    "egress.direct-ip": ("python-tcp4", "python-named", ("syscalls", "packets"), "dns"),
    # The gateway drops: no call ever returns an error; on an open network the same connection works.
    "network.blocked": ("c-tcp4-gateway-drop", "c-tcp4-open", ("syscalls", "packets"), "dns"),
    # An order to send the conversation away; a text in which ``output_tokens`` holds the letters of "to".
    # Its calls show what it writes to its client as well.
    "mcp.exfil-instruction": ("python-forward-conversation", "python-token-counts", ("mcp", "syscalls"), "packets"),
}
NETNS = missing(["gcc"])


def guest_problem() -> str | None:
    """Return what keeps this machine from running guests."""
    try:
        MicroVM().require(["gcc"])
    except RecorderError as error:
        return str(error)
    return None if image_folder().exists() else "there is no image yet (python -m controls image)"


GUEST = guest_problem()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("netns", marks=pytest.mark.skipif(NETNS is not None, reason=f"cannot record here: {NETNS}")),
        pytest.param("microvm", marks=pytest.mark.skipif(GUEST is not None, reason=f"cannot run guests here: {GUEST}")),
    ],
)
def shell(request: pytest.FixtureRequest) -> Iterator[Shell]:
    """Give each shell in turn, a guest for all of the module's cases."""
    if request.param == "netns":
        yield Netns()
        return
    with MicroVM() as guest:
        yield guest


def without(bundle: Path, channels: tuple[str, ...], to: Path) -> Path:
    """Copy a bundle as if some channels had never been recorded."""
    shutil.copytree(bundle, to)
    manifest = json.loads((to / "manifest.json").read_text())
    gone = [one for one in manifest["evidence"] if one["channel"] in channels]
    assert {one["channel"] for one in gone} == set(channels)
    for one in gone:
        (to / one["path"]).unlink()
        manifest["evidence"].remove(one)
    (to / "manifest.json").write_text(json.dumps(manifest))
    return to


def said(bundle: Path, check_id: str) -> CheckResult:
    (one,) = check(bundle, checks=[check_id]).checks
    return one


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_detected_its_look_alike_is_silent_and_without_the_deciding_channel_nothing_is_claimed(
    fault: str, shell: Shell, tmp_path: Path
) -> None:
    fires, silent, deciding, other = FAULTS[fault]
    control = KNOWN[fault.replace(".", "/")]
    for name, verdict in ((fires, "detected"), (silent, "not_detected")):
        case = f"{control.id}/{name}"
        bundle = record(control, control.variants[name], tmp_path, probe=True, shell=shell)
        assert differences(bundle, load_label(ROOT / "labels/cases" / f"{case}.yaml")) == []
        manifest = json.loads((bundle / "manifest.json").read_text())
        assert manifest["host"]["shell"] == shell.name
        whole = said(bundle, fault)
        assert (whole.verdict, whole.proof) == (verdict, "proved")
        assert said(without(bundle, (other,), tmp_path / f"{name}-blind-elsewhere"), fault).verdict == verdict
        # Where a firewall counts what it denies, its counter alone tells of an attempt.
        firewall = [one["channel"] for one in manifest["evidence"] if one["channel"] == "firewall"]
        blind = said(without(bundle, (*deciding, *firewall), tmp_path / f"{name}-blind"), fault)
        assert (blind.verdict, blind.findings) == ("not_observable", [])
