"""Monotone honesty: less evidence never turns a verdict into its opposite.

Every case is tried without every set of channels and class of calls where coverage is measured (``test_coverage.py``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from corpora import FIRES, cases_of, repository
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.data.baseline import load_baseline
from mcpdetect.engine.discovery import detectors
from mcpdetect.errors import InputError
from mcpdetect.ingest.evidence import Evidence
from mcpdetect.ingest.open import open_adapter
from mcpdetect.ingest.probes import ProbeWatch
from mcpdetect.model.kinds import CALLS
from mcpdetect.model.net import NetFlow
from mcpdetect.model.result import Finding
from mcpdetect.model.vocabulary import VerdictWord
from mcpdetect.score.ablation import (
    Ablated,
    Alone,
    Violation,
    alone,
    channel_ablations,
    class_ablations,
    violations,
)
from mcpdetect.score.corpus import Case
from mcpdetect.score.cuts import Content, content_of, cut_strings, cut_tail, drop_class, drop_packets, drop_process
from mcpdetect.score.cuts import written as write
from mcpdetect.score.recording import Recording
from mcpdetect.score.runner import as_expected

CASES = {case.label.case: case for case in cases_of(repository())}
NAMES = sorted(CASES)
some = pytest.mark.parametrize("case", [CASES[name] for name in NAMES[::29]], ids=NAMES[::29])


@cache
def recording(case: str) -> Recording:
    return Recording(CASES[case].bundle, detectors())


def right(case: Case) -> dict[str, VerdictWord] | None:
    """Return the verdicts that a case with a known weakness may come right to."""
    if case.label.todo is None:
        return None
    return {check: one.verdict for check, one in case.label.checks.items()}


def told(found: list[Violation]) -> str:
    return "\n".join(map(str, found))


@some
def test_without_any_set_of_channels_no_verdict_turns_over(case: Case) -> None:
    record = recording(case.label.case)
    ablated = list(channel_ablations(record))
    assert len(ablated) == 2 ** len(record.channels) - 2 >= 2
    assert all(set(one.results) == set(record.whole) for one in ablated)
    found = violations(case.label.case, record.whole, ablated, right(case))
    assert not found, told(found)


@some
def test_without_any_class_of_calls_no_verdict_turns_over(case: Case) -> None:
    record = recording(case.label.case)
    ablated = list(class_ablations(record))
    assert len(ablated) >= 1
    found = violations(case.label.case, record.whole, ablated, right(case))
    assert not found, told(found)


@some
def test_a_case_judged_again_says_the_same(case: Case) -> None:
    record = recording(case.label.case)
    assert record.judge() == record.whole
    assert {check: as_expected(said) for check, said in record.judge().items()} == {
        check: as_expected(said) for check, said in Recording(case.bundle, detectors()).whole.items()
    }


def test_judging_what_was_read_is_judging_the_files_that_are_left() -> None:
    from mcpdetect.engine.run import run_checks

    compared = 0
    for case in NAMES[::36]:
        record = recording(case)
        for item in record.bundle.evidence:
            left = [one for one in record.bundle.evidence if one is not item]
            opened = [open_adapter(one.channel, one.format, one.path, one.name, one.declared) for one in left]
            source = Evidence(record.bundle.run, opened)
            source.probes = ProbeWatch(record.bundle.probes, record.bundle.run.entry) if record.bundle.probes else None
            approved = load_baseline(record.bundle.baseline) if record.bundle.baseline is not None else None
            fresh = run_checks(source, detectors(), secrets=record.bundle.secrets, baseline=approved)
            kept = record.judge(without=[item.name])
            wanted = {one.check: one.verdict for one in fresh.checks if not one.reason.startswith("not configured")}
            if item.channel == "mcp":
                # Read without a transcript, calls let the conversation be overheard; what was read beside one does not.
                wanted = {check: verdict for check, verdict in wanted.items() if not check.startswith("mcp.")}
            assert wanted
            assert {check: kept[check].verdict for check in wanted} == wanted
            compared += 1
    assert compared > 20


def cut_of(draw: st.DrawFn, content: Content) -> tuple[str, Content]:
    """Draw a cut of a file and what it is called."""
    number = len(content.parts)
    ways = ["tail"]
    if content.item.channel == "syscalls":
        ways += ["strings", "class", *(["process"] if content.processes else [])]
    if content.item.channel == "packets" and number:
        ways += ["packets"]
    way = draw(st.sampled_from(ways))
    if way == "tail":
        left = draw(st.integers(0, number))
        return f"{content.item.name} after part {left} of {number}", cut_tail(content, left)
    if way == "strings":
        size = draw(st.sampled_from([0, 16, 32]))
        return f"strings beyond {size} bytes", cut_strings(content, size)
    if way == "class":
        kind = draw(st.sampled_from(sorted(CALLS)))
        return f"calls of {kind}", drop_class(content, kind)
    if way == "process":
        pid = draw(st.sampled_from(content.processes))
        return f"process {pid.decode()}", drop_process(content, pid)
    gone = draw(st.sets(st.integers(0, number - 1), min_size=1))
    return f"packets {sorted(gone)} of {number}", drop_packets(content, gone)


@given(data=st.data())
@settings(max_examples=150)
def test_no_cut_of_a_file_turns_a_verdict_over(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES), "case")
    record = recording(name)
    whole = [one for one in record.bundle.evidence if one.channel not in ("binaries", "files")]
    item = data.draw(st.sampled_from(whole), "file")
    content = content_of(item)
    assert content is not None
    taken, cut = data.draw(st.composite(cut_of)(content), "cut")
    others = [one.name for one in record.bundle.evidence if one is not item]
    gone = data.draw(st.sets(st.sampled_from(others)) if others else st.just(set()), "files taken away")
    with tempfile.TemporaryDirectory() as folder:
        cut_file = write(cut, Path(folder))
        if not cut.parts and not cut.head:
            with pytest.raises(InputError, match="is empty"):  # nothing is claimed of it
                record.reread(cut_file)
            return
        kept = record.reread(cut_file)
    ablated = Ablated(" and ".join([taken, *sorted(gone)]), 1, record.judge(without=gone, changed={item.name: kept}))
    found = violations(name, record.whole, [ablated], right(CASES[name]))
    assert not found, told(found)


def test_a_host_whose_name_was_not_watched_is_no_new_host(tmp_path: Path) -> None:
    record = recording("drift/behaviour/all-approved")
    (log,) = (one for one in record.bundle.evidence if one.channel == "syscalls")
    content = content_of(log)
    assert content is not None
    kept = record.reread(write(cut_strings(content, 0), tmp_path))
    wire = [one.name for one in record.bundle.evidence if one.channel in ("dns", "packets")]
    said = record.judge(without=wire, changed={log.name: kept})["drift.behaviour"]
    assert (record.whole["drift.behaviour"].verdict, said.verdict) == ("not_detected", "not_observable")
    assert [limit.what for limit in said.limits if limit.hides] == ["names-unknown"]


class CountsOnTheWire(Detector):
    """A check with a fault: it takes a missing channel for a quiet one."""

    spec = Spec(
        id="test.faulty",
        version=1,
        claim="no traffic",
        kinds=("net.flow",),
        needs=(AnyOf("calls", Need("syscalls", ("process.start",))),),
        blind_to=("nothing it admits",),
    )

    def on_event(self, event: object) -> Iterable[Finding]:
        """Find traffic."""
        assert isinstance(event, NetFlow)
        yield self.finding(event, title="traffic", reason="there was some", identity="flow")


def test_a_faulty_check_is_found_with_the_smallest_ablation() -> None:
    record = Recording(CASES[FIRES].bundle, {"test.faulty": CountsOnTheWire})
    assert record.whole["test.faulty"].verdict == "detected"
    found = violations(FIRES, record.whole, channel_ablations(record))
    assert found == [
        Violation(FIRES, "test.faulty", "channel packets", "detected", "not_detected", "no traffic"),
    ]
    assert str(found[0]) == (f"{FIRES}: test.faulty: detected, without channel packets: not_detected (no traffic)")


def test_a_weakness_may_come_right_when_what_confuses_it_is_gone() -> None:
    record = Recording(CASES[FIRES].bundle, {"test.faulty": CountsOnTheWire})
    ablated = list(channel_ablations(record))
    assert violations(FIRES, record.whole, ablated, {"test.faulty": "not_detected"}) == []


def test_what_a_channel_proves_alone_is_counted() -> None:
    record = recording(FIRES)
    counts: dict[str, Alone] = {}
    alone(counts, record.whole, list(channel_ablations(record)))
    assert counts["egress.direct-ip"] == Alone(
        cases={"detected": 1},
        channels={"syscalls": {"detected": 1}, "packets": {"detected": 1}},
        sets={"syscalls": {"detected": 1}, "packets": {"detected": 1}},
    )
    assert counts["secrets.canary-read"] == Alone(
        cases={"not_detected": 1}, channels={"syscalls": {"not_detected": 1}}, sets={"syscalls": {"not_detected": 1}}
    )
    # nobody configured what the server documents, so nothing is claimed and nothing counted
    assert "egress.unexplained-host" not in counts
