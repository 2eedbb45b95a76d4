"""One pass over a run: facts and detectors fed by event kind, crashes kept to the one that crashed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mcpdetect.contract import Detector, Fact
from mcpdetect.correlate.calls import Calls
from mcpdetect.correlate.residues import Residues, spoils
from mcpdetect.data.residues import residues
from mcpdetect.engine.boundary import crash_text, guarded
from mcpdetect.engine.context import RunContext
from mcpdetect.engine.observability import Assessment, assess
from mcpdetect.engine.triggers import name_triggers, triggered
from mcpdetect.engine.unseen import Watched
from mcpdetect.engine.windows import require_one_run
from mcpdetect.model.event import Event
from mcpdetect.model.inputs import Baseline, Expectations, Secrets
from mcpdetect.model.observation import Observation
from mcpdetect.model.result import CheckResult, Finding, Limit, Result
from mcpdetect.model.trace import TraceSource
from mcpdetect.model.vocabulary import Proof, VerdictWord, level_at_least
from mcpdetect.model.wanted import Wanted

__all__ = ["MAX_PLACES", "run_checks"]

MAX_PLACES = 50
"""Most places kept for one finding; ``facts["count"]`` has the true number of occurrences."""


@dataclass(slots=True)
class _Slot:
    """One detector at work, or one that cannot start."""

    kind: type[Detector]
    context: RunContext
    detector: Detector | None = None
    findings: dict[str, Finding] = field(default_factory=dict)
    examined: int = 0
    crash: str | None = None
    unconfigured: list[str] = field(default_factory=list)

    def start(self, kind: type[Detector]) -> None:
        """Build the detector."""
        self.detector = kind(self.context)

    def look(self, event: Event) -> None:
        """Show the detector one event and keep what it found."""
        if self.detector is not None:
            self.take(self.detector.on_event(event))

    def finish(self, detector: Detector) -> None:
        """Let the detector conclude."""
        self.take(detector.finish())

    def take(self, found: Iterable[Finding]) -> None:
        """Keep findings, one per key: a repetition adds its places and counts up."""
        for finding in found:
            if not finding.where:
                raise ValueError(f"a finding without evidence: {finding.title}")
            known = self.findings.get(finding.key)
            if known is None:
                finding.facts.setdefault("count", 1)
                del finding.where[MAX_PLACES:]
                self.findings[finding.key] = finding
                continue
            known.facts["count"] = _count(known) + _count(finding)
            for place in finding.where:
                if place not in known.where and len(known.where) < MAX_PLACES:
                    known.where.append(place)
            if level_at_least(finding.level, known.level) and finding.level != known.level:
                known.level, known.explanations = finding.level, finding.explanations


def _count(finding: Finding) -> int:
    count = finding.facts.get("count", 1)
    return count if isinstance(count, int) else 1


@dataclass(slots=True)
class _FactSlot:
    fact: Fact
    used_by: list[_Slot] = field(default_factory=list)


def _facts_of(kinds: Iterable[type[Fact]]) -> list[type[Fact]]:
    """Return the facts and all they use, each after the ones it uses."""
    order: list[type[Fact]] = []

    def visit(kind: type[Fact]) -> None:
        if kind not in order:
            for used in kind.uses:
                visit(used)
            order.append(kind)

    for kind in kinds:
        visit(kind)
    return order


def run_checks(
    source: TraceSource,
    detectors: dict[str, type[Detector]],
    *,
    secrets: Secrets | None = None,
    expectations: Expectations | None = None,
    baseline: Baseline | None = None,
    assurance: Proof | None = None,
) -> Result:
    """Run detectors over one run and return every verdict.

    Args:
        source: the run; its events are read once.
        detectors: by id.
        secrets: planted secrets.
        expectations: documented behaviour.
        baseline: the approved description.
        assurance: least proof for ``not_detected``; default ``declared`` where a manifest stands behind the run,
            else ``inferred``.

    Raises:
        InputError: the evidence cannot be used, or its files are of different runs.
    """
    source = Watched(source)
    least: Proof = assurance or ("declared" if source.run.declared else "inferred")
    facts: dict[type[Fact], Fact] = {}
    slots = [_Slot(kind, RunContext(source, facts, secrets, expectations, baseline)) for kind in detectors.values()]
    for slot in slots:
        slot.unconfigured = [name for name in slot.kind.spec.requires if not _given(getattr(slot.context, name))]
    working = [slot for slot in slots if not slot.unconfigured]
    rests = {id(slot): _rests_on(slot.kind) for slot in working}

    fact_slots: dict[type[Fact], _FactSlot] = {}
    broken: dict[type[Fact], str] = {}
    for fact_kind in _facts_of(fact for slot in working for fact in rests[id(slot)]):
        if broken.keys() & set(fact_kind.uses):
            broken[fact_kind] = next(broken[used] for used in fact_kind.uses if used in broken)
            continue
        error = guarded(
            lambda kind: facts.update({kind: kind(source.run, *(facts[used] for used in kind.uses))}), fact_kind
        )
        if error is not None:
            broken[fact_kind] = f"{fact_kind.__name__}, which it rests on, in its start: {crash_text(error, None)}"
        else:
            fact_slots[fact_kind] = _FactSlot(facts[fact_kind])
    for slot in working:
        for fact_kind in _facts_of(rests[id(slot)]):
            if fact_kind in broken:
                slot.crash = broken[fact_kind]
            else:
                fact_slots[fact_kind].used_by.append(slot)
    working = [slot for slot in working if slot.crash is None]
    for slot in working:
        error = guarded(slot.start, slot.kind)
        if error is not None:
            slot.crash = f"in its start: {crash_text(error, None)}"

    _feed(source, list(fact_slots.values()), working)
    observations = source.observations()
    require_one_run(observations)
    told = facts.get(Residues)
    # What a residue hides is no reason to doubt a finding, so detectors never see these losses.
    lowered = told.observed(observations) if isinstance(told, Residues) else observations
    for slot in working:
        if slot.crash is None and slot.detector is not None:
            error = guarded(slot.finish, slot.detector)
            if error is not None:
                slot.crash = f"in its finish: {crash_text(error, None)}"
    checks = [_conclude(slot, lowered, least) for slot in slots]
    asked = facts.get(Calls)
    if isinstance(asked, Calls):
        name_triggers(checks, asked)
    return Result(run=source.run, checks=checks, observations=lowered, assurance=least)


def _rests_on(kind: type[Detector]) -> list[type[Fact]]:
    """Return the facts a check rests on: those it reads, the residues where one could spoil its claim, the calls."""
    spoiled = any(spoils(residue, kind.spec) for residue in residues())
    return [*kind.spec.facts, *([Residues] if spoiled else []), *([Calls] if triggered(kind.spec) else [])]


def _given(value: Secrets | Expectations | Baseline | None) -> bool:
    """Return whether an input says anything; secrets that plant nothing would make every check of them pass."""
    return value is not None and not (isinstance(value, Secrets) and not value.canaries)


def _feed(source: TraceSource, facts: list[_FactSlot], slots: list[_Slot]) -> None:
    wanted: set[str] = set()
    fact_table: dict[str, list[_FactSlot]] = {}
    table: dict[str, list[_Slot]] = {}
    for fact_slot in facts:
        for kind in fact_slot.fact.kinds:
            wanted.add(kind)
            fact_table.setdefault(kind, []).append(fact_slot)
    for slot in slots:
        for kind in slot.kind.spec.kinds:
            wanted.add(kind)
            if slot.crash is None:
                table.setdefault(kind, []).append(slot)
    for event in source.events(Wanted(wanted, _texts(fact_table, slots))):
        kind = event.kind
        for fact_slot in fact_table.get(kind, ()):
            _feed_fact(fact_slot, event, table)
        for slot in table.get(kind, ()):
            _feed_slot(slot, event, table)


def _texts(facts: dict[str, list[_FactSlot]], slots: list[_Slot]) -> dict[str, set[str]]:
    """Return what the events of a kind must hold, for kinds of which all who ask use no others."""
    asked = {kind for slot in slots for kind in slot.kind.spec.kinds}
    return {
        kind: {fact_slot.fact.only[kind] for fact_slot in askers}
        for kind, askers in facts.items()
        if kind not in asked and all(kind in fact_slot.fact.only for fact_slot in askers)
    }


def _feed_fact(fact_slot: _FactSlot, event: Event, table: dict[str, list[_Slot]]) -> None:
    """Feed a fact; when it crashes, every check that rests on it does."""
    error = guarded(fact_slot.fact.on_event, event)
    if error is not None:
        name = type(fact_slot.fact).__name__
        for slot in fact_slot.used_by:
            if slot.crash is None:
                slot.crash = f"{name}, which it rests on: {crash_text(error, event)}"
                _retire(slot, table)


def _feed_slot(slot: _Slot, event: Event, table: dict[str, list[_Slot]]) -> None:
    if slot.crash is not None:
        return
    slot.examined += 1
    error = guarded(slot.look, event)
    if error is not None:
        slot.crash = crash_text(error, event)
        _retire(slot, table)


def _retire(slot: _Slot, table: dict[str, list[_Slot]]) -> None:
    for kind in slot.kind.spec.kinds:
        if slot in table.get(kind, ()):
            table[kind] = [other for other in table[kind] if other is not slot]


def _conclude(slot: _Slot, observations: list[Observation], least: Proof) -> CheckResult:
    spec = slot.kind.spec
    title = (slot.kind.__doc__ or spec.id).strip().partition("\n")[0]
    result = CheckResult(
        check=spec.id,
        version=spec.version,
        title=title,
        verdict="not_observable",
        proof="absent",
        reason="",
        examined=slot.examined,
        blind_to=list(spec.blind_to),
    )
    if slot.unconfigured:
        result.reason = f"not configured: {', '.join(slot.unconfigured)}"
        for name in slot.unconfigured:
            option = {"secrets": "--secrets", "expectations": "--expect", "baseline": "--baseline"}[name]
            given, them = ("was", "it") if name == "baseline" else ("were", "them")
            result.limits.append(Limit("not-configured", f"no {name} {given} given; name {them} with {option}"))
        return result
    if slot.crash is not None:
        result.verdict = "error"
        result.reason = f"the detector crashed: {slot.crash}"
        return result
    assessment = assess(spec, observations, least)
    result.proof = assessment.proof
    result.limits = assessment.limits + slot.context.limits
    result.findings = list(slot.findings.values())
    result.verdict, result.reason = _verdict(slot, assessment)
    return result


def _verdict(slot: _Slot, assessment: Assessment) -> tuple[VerdictWord, str]:
    findings = slot.findings
    if findings:
        number = len(findings)
        return "detected", f"{number} finding{'s' if number != 1 else ''}"
    hiding = [limit for limit in (*assessment.limits, *slot.context.limits) if limit.hides]
    if hiding or not assessment.observable:
        more = f" (and {len(hiding) - 1} more)" if len(hiding) > 1 else ""
        return "not_observable", f"{hiding[0].detail}{more}" if hiding else "its needs are not met"
    return "not_detected", slot.kind.spec.claim
