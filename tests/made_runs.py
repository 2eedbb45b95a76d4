"""Running one check over what was stated by hand, and taking evidence away from it."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from hand_sources import HandSource

from mcpdetect.engine.discovery import select
from mcpdetect.engine.run import run_checks
from mcpdetect.model.event import Event
from mcpdetect.model.inputs import Canary, Expectations, ExpectedHost, Secrets
from mcpdetect.model.kinds import channel_of
from mcpdetect.model.observation import Observation
from mcpdetect.model.result import CheckResult
from mcpdetect.model.trace import Run

__all__ = ["check", "expecting", "secrets", "turned_over"]


def secrets(*paths: str, **values: str) -> Secrets:
    """Return planted files by path (kind is the last part in capitals) and environment values by variable."""
    canaries = [Canary(path.rpartition("/")[2].upper(), None, path) for path in paths]
    canaries += [Canary(name, value, variable=name) for name, value in values.items()]
    return Secrets("secrets.yaml", canaries)


def expecting(*hosts: str) -> Expectations:
    return Expectations("expect.yaml", [ExpectedHost(host) for host in hosts])


def check(
    name: str,
    events: list[Event],
    observations: list[Observation],
    *,
    run: Run | None = None,
    planted: Secrets | None = None,
    expectations: Expectations | None = None,
) -> CheckResult:
    """Run one check over events and observations made by hand."""
    source = HandSource(copy.deepcopy(events), copy.deepcopy(observations), run)
    result = run_checks(source, select([name]), secrets=planted, expectations=expectations)
    assert len(result.checks) == 1
    assert result.checks[0].verdict != "error", result.checks[0].reason
    return result.checks[0]


def _fewer(
    events: list[Event], observations: list[Observation]
) -> Iterator[tuple[str, list[Event], list[Observation]]]:
    channels = {item.channel for item in observations}
    for channel in sorted(channels):
        kept = [event for event in events if channel_of(event) != channel]
        yield channel, kept, [item for item in observations if item.channel != channel]
    watched = sorted({kind for item in observations if item.channel == "syscalls" for kind in item.watches})
    for kind in watched:
        less = copy.deepcopy(observations)
        for item in less:
            if item.channel == "syscalls":
                item.watches.pop(kind, None)
        gone = {
            "socket.send": ("dns.query", "tls.client_hello", "http.request"),
            "socket.receive": ("dns.answer",),
        }.get(kind, ())
        kept = [event for event in events if channel_of(event) != "syscalls" or event.kind not in (kind, *gone)]
        yield f"syscalls {kind}", kept, less


def turned_over(
    name: str,
    events: list[Event],
    observations: list[Observation],
    *,
    run: Run | None = None,
    planted: Secrets | None = None,
    expectations: Expectations | None = None,
) -> list[str]:
    """Take away every channel, then every class of system calls; return where a verdict turned into its opposite."""
    options = {"run": run, "planted": planted, "expectations": expectations}
    whole = check(name, events, observations, **options).verdict  # type: ignore[arg-type]
    tried = 0
    bad = []
    for what, kept, left in _fewer(events, observations):
        verdict = check(name, kept, left, **options).verdict  # type: ignore[arg-type]
        if verdict not in (whole, "not_observable") and whole != "not_observable":
            bad.append(f"without {what}: {whole} became {verdict}")
        tried += 1
    assert tried > 0
    return bad
