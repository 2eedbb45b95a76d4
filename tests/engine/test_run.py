"""The engine: verdicts from needs, limits and findings; crashes; facts in order; findings folded by key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest
from hand_sources import HandSource, observed, where

from mcpdetect.contract import AnyOf, Context, Detector, Fact, Need, Spec, finding_key
from mcpdetect.correlate.calls import Calls
from mcpdetect.correlate.processes import Processes
from mcpdetect.correlate.residues import Residues
from mcpdetect.engine.run import MAX_PLACES, run_checks
from mcpdetect.errors import InputError, SpecError
from mcpdetect.model.event import Event, FileOpen, ProcessExit
from mcpdetect.model.inputs import Canary, Secrets
from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Finding, Limit
from mcpdetect.model.trace import Run


def spec(**changes: object) -> Spec:
    values: dict[str, object] = {
        "id": "test.opens",
        "version": 3,
        "claim": "nothing named secret was opened",
        "kinds": ("file.open",),
        "needs": (AnyOf("opens", Need("syscalls", ("file.open",))),),
        "blind_to": ("what is not a file",),
    }
    return Spec(**{**values, **changes})  # type: ignore[arg-type]


class Opens(Detector):
    """A secret was opened."""

    spec: ClassVar[Spec] = spec()

    def on_event(self, event: Event) -> Iterator[Finding]:
        if isinstance(event, FileOpen) and event.path == "/secret":
            yield self.finding(event, title="opened", reason="it was", identity="/secret", path=event.path)


def opened(line: int, path: str = "/secret") -> FileOpen:
    return FileOpen(where=where(line), t_ns=line, call="openat", result=3, path=path, fd=3, process="7")


def only(source: HandSource, detector: type[Detector] = Opens, **options: object) -> CheckResult:
    result = run_checks(source, {detector.spec.id: detector}, **options)  # type: ignore[arg-type]
    assert len(result.checks) == 1
    return result.checks[0]


def test_a_finding_makes_detected_with_its_place_and_stable_key() -> None:
    check = only(HandSource([opened(4)], [observed("syscalls", "file.open")]))
    assert check == CheckResult(
        check="test.opens",
        version=3,
        title="A secret was opened.",
        verdict="detected",
        proof="inferred",
        reason="1 finding",
        findings=[
            Finding(
                check="test.opens",
                title="opened",
                reason="it was",
                level="suspicious",
                where=[Where("strace.log", 4)],
                process="7",
                t_ns=4,
                facts={"path": "/secret", "count": 1},
                key=finding_key("test.opens", "/secret"),
                identity="/secret",
            )
        ],
        examined=1,
        blind_to=["what is not a file"],
    )
    assert check.findings[0].key == "23961a99fd45eac3"


def test_nothing_found_in_a_watched_channel_is_not_detected_with_the_claim() -> None:
    check = only(HandSource([opened(1, "/other")], [observed("syscalls", "file.open")]))
    assert (check.verdict, check.reason, check.proof, check.examined, check.limits) == (
        "not_detected",
        "nothing named secret was opened",
        "inferred",
        1,
        [],
    )


def test_no_evidence_of_the_channel_is_not_observable_and_says_which() -> None:
    check = only(HandSource([], [observed("dns", "dns.query", source="dns.log")]))
    assert (check.verdict, check.proof) == ("not_observable", "absent")
    assert check.limits == [Limit("missing-channel", "opens: no syscalls evidence")]


def test_a_channel_that_never_showed_the_kind_is_not_observable() -> None:
    check = only(HandSource([], [observed("syscalls", "socket.open")]))
    assert check.verdict == "not_observable"
    assert check.limits == [Limit("not-watched", "opens: strace.log never showed file.open")]


@pytest.mark.parametrize(
    ("loss", "verdict"),
    [
        (Loss("unparsed", "3 lines", 3, touches=["file.open"]), "not_observable"),
        (Loss("no-exit", "cut", touches=[]), "not_observable"),
        (Loss("unparsed", "3 lines", 3, touches=["socket.send"]), "not_detected"),
        (Loss("unfinished", "at exit", note=True), "not_detected"),
    ],
)
def test_only_a_loss_that_could_hide_the_fact_forbids_not_detected(loss: Loss, verdict: str) -> None:
    check = only(HandSource([], [observed("syscalls", "file.open", losses=[loss])]))
    assert check.verdict == verdict
    hidden = [Limit(loss.what, f"strace.log: {loss.detail}", True, None, loss.count)]
    assert check.limits == (hidden if verdict == "not_observable" else [])


def test_a_loss_never_turns_detected_into_anything_else() -> None:
    loss = Loss("no-exit", "cut", touches=[])
    assert only(HandSource([opened(1)], [observed("syscalls", "file.open", losses=[loss])])).verdict == "detected"


def test_an_alternative_channel_makes_a_loss_good_and_keeps_it_as_a_note() -> None:
    class Either(Opens):
        """Either."""

        spec = spec(
            needs=(AnyOf("contacts", Need("packets", ("net.flow",)), Need("syscalls", ("socket.connect",))),),
        )

    lossy = observed(
        "syscalls", "socket.connect", losses=[Loss("io_uring", "rings in use", touches=["socket.connect"])]
    )
    wire = observed("packets", "net.flow", source="capture.pcap")
    check = only(HandSource([], [lossy, wire]), Either)
    assert check.verdict == "not_detected"
    assert check.limits == [Limit("io_uring", "strace.log: rings in use", False)]
    assert only(HandSource([], [lossy]), Either).verdict == "not_observable"


def test_a_loopback_capture_cannot_show_what_leaves() -> None:
    class Wire(Opens):
        """Wire."""

        spec = spec(needs=(AnyOf("contacts", Need("packets", ("net.flow",))),))

    loopback = observed("packets", "net.flow", source="lo.pcap")
    loopback.scope = "loopback"
    check = only(HandSource([], [loopback]), Wire)
    assert (check.verdict, check.limits) == (
        "not_observable",
        [Limit("missing-channel", "contacts: no packets evidence")],
    )


@pytest.mark.parametrize(
    ("declared", "asked", "verdict"),
    [
        (False, None, "not_detected"),
        (True, None, "not_observable"),
        (True, "inferred", "not_detected"),
        (False, "proved", "not_observable"),
    ],
)
def test_the_least_proof_follows_the_manifest_or_the_option(declared: bool, asked: str | None, verdict: str) -> None:
    source = HandSource([], [observed("syscalls", "file.open")], Run(declared=declared))
    check = only(source, assurance=asked)
    assert check.verdict == verdict
    if verdict == "not_observable":
        least = asked or "declared"
        assert check.limits == [
            Limit(
                "weak-proof",
                f"opens: strace.log is only inferred to have watched syscalls (file.open), {least} is asked for",
            )
        ]


def test_a_check_without_its_inputs_is_not_configured_and_never_runs() -> None:
    class Needy(Opens):
        """Needy."""

        spec = spec(requires=("secrets",))

        def __init__(self, context: Context) -> None:
            raise AssertionError("must not start")

    check = only(HandSource([opened(1)], [observed("syscalls", "file.open")]), Needy)
    assert (check.verdict, check.reason) == ("not_observable", "not configured: secrets")
    assert check.limits == [Limit("not-configured", "no secrets were given; name them with --secrets")]


def test_a_configured_check_runs() -> None:
    class Needy(Opens):
        """Needy."""

        spec = spec(requires=("secrets",))

    secrets = Secrets("s.yaml", [Canary("K", "CANARY-1", "/secret")])
    assert (
        only(HandSource([opened(1)], [observed("syscalls", "file.open")]), Needy, secrets=secrets).verdict == "detected"
    )


@pytest.mark.parametrize("stage", ["start", "event", "finish"])
def test_a_crash_is_an_error_for_that_check_alone(stage: str) -> None:
    class Broken(Opens):
        """Broken."""

        spec = spec(id="test.broken")

        def __init__(self, context: Context) -> None:
            super().__init__(context)
            if stage == "start":
                raise KeyError("boom")

        def on_event(self, event: Event) -> Iterator[Finding]:
            if stage == "event":
                raise KeyError("boom")
            return iter(())

        def finish(self) -> Iterator[Finding]:
            if stage == "finish":
                raise KeyError("boom")
            return iter(())

    source = HandSource([opened(1), opened(2)], [observed("syscalls", "file.open")])
    result = run_checks(source, {"test.broken": Broken, "test.opens": Opens})
    broken, sound = result.checks
    assert (broken.verdict, sound.verdict) == ("error", "detected")
    assert sound.findings[0].facts["count"] == 2
    assert broken.reason.startswith("the detector crashed: ")
    assert "KeyError: 'boom'" in broken.reason
    assert ("reading strace.log:1" in broken.reason) == (stage == "event")


def test_a_crashing_fact_takes_down_exactly_the_checks_that_rest_on_it() -> None:
    class Shaky(Fact):
        kinds = ("process.exit",)

        def on_event(self, event: Event) -> None:
            raise ValueError("no")

    class Resting(Opens):
        """Resting."""

        spec = spec(id="test.resting", facts=(Shaky,))

    events: list[Event] = [ProcessExit(where=where(1), t_ns=1, process="7", code=0), opened(2)]
    source = HandSource(events, [observed("syscalls", "file.open")])
    resting, sound = run_checks(source, {"test.resting": Resting, "test.opens": Opens}).checks
    assert (resting.verdict, sound.verdict) == ("error", "detected")
    assert "Shaky, which it rests on: ValueError: no" in resting.reason


def test_facts_come_before_the_detectors_and_after_the_facts_they_use() -> None:
    order: list[str] = []

    class First(Fact):
        kinds = ("file.open",)

        def on_event(self, event: Event) -> None:
            order.append("first")

    class Second(Fact):
        kinds = ("file.open",)
        uses = (First,)

        def __init__(self, run: Run, *uses: Fact) -> None:
            super().__init__(run, *uses)
            assert isinstance(uses[0], First)

        def on_event(self, event: Event) -> None:
            order.append("second")

    class Last(Opens):
        """Last."""

        spec = spec(facts=(Second,))

        def on_event(self, event: Event) -> Iterator[Finding]:
            order.append("detector")
            assert isinstance(self.context.fact(Second), Second)
            return iter(())

    assert only(HandSource([opened(1)], [observed("syscalls", "file.open")]), Last).verdict == "not_detected"
    assert order == ["first", "second", "detector"]


def test_only_the_wanted_kinds_are_asked_of_the_source() -> None:
    class Exits(Fact):
        kinds = ("process.exit",)

    class Wanting(Opens):
        """Wanting."""

        spec = spec(facts=(Exits,))

    source = HandSource([], [observed("syscalls", "file.open")])
    only(source, Wanting)
    # What calls do out of sight is looked for as well, for a check that rests on calls.
    assert source.asked == frozenset({"file.open", "process.exit", *Residues.kinds, *Processes.kinds, *Calls.kinds})


def test_repetitions_fold_into_one_finding_with_a_true_count_and_bounded_places() -> None:
    events: list[Event] = [opened(line) for line in range(1, MAX_PLACES + 31)]
    check = only(HandSource(events, [observed("syscalls", "file.open")]))
    assert len(check.findings) == 1
    assert check.findings[0].facts["count"] == MAX_PLACES + 30
    assert check.findings[0].where == [Where("strace.log", line) for line in range(1, MAX_PLACES + 1)]


def test_a_detectors_own_hiding_limit_forbids_not_detected_and_repeats_count_up() -> None:
    class Unsure(Opens):
        """Unsure."""

        def finish(self) -> Iterator[Finding]:
            self.context.limit("odd", "something odd", where=where(9))
            self.context.limit("odd", "something odd")
            self.context.limit("aside", "by the way", hides=False)
            return iter(())

    check = only(HandSource([], [observed("syscalls", "file.open")]), Unsure)
    assert (check.verdict, check.reason) == ("not_observable", "something odd")
    assert check.limits == [
        Limit("odd", "something odd", True, Where("strace.log", 9), 2),
        Limit("aside", "by the way", False),
    ]


def test_files_of_two_runs_are_refused_with_both_names() -> None:
    minute = 60 * 1_000_000_000
    early = observed("syscalls", "file.open", end_ns=minute)
    late = observed("packets", "net.flow", source="capture.pcap", begin_ns=2 * minute + 1, end_ns=3 * minute)
    with pytest.raises(InputError) as caught:
        only(HandSource([], [early, late]))
    assert caught.value.file == "capture.pcap"
    assert caught.value.value == "strace.log ends 60 s before capture.pcap begins"
    late.begin_ns = 2 * minute
    assert only(HandSource([], [early, late])).verdict == "not_detected"


def test_a_finding_without_evidence_is_the_detectors_error() -> None:
    class Baseless(Opens):
        """Baseless."""

        def finish(self) -> Iterator[Finding]:
            yield self.finding(title="t", reason="r", identity="i")

    check = only(HandSource([], [observed("syscalls", "file.open")]), Baseless)
    assert (check.verdict, check.findings) == ("error", [])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"id": "nodot"}, "an id is category.behaviour"),
        ({"version": 0}, "a version is 1 or more"),
        ({"blind_to": ()}, "claim and blind_to must say something"),
        ({"needs": ()}, "kinds and needs must not be empty"),
        ({"kinds": ("file.opened",)}, "'file.opened' is no event kind"),
        ({"needs": (AnyOf("x", Need("wires", ("net.flow",))),)}, "'wires' is no channel"),  # type: ignore[arg-type]
    ],
)
def test_an_impossible_declaration_is_refused_when_it_is_made(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec(**changes)
    assert caught.value.problem == problem
