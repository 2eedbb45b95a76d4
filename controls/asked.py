"""Facts for the registry: the hosts a server asked for, and how a denied network showed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import mcpdetect
from mcpdetect.correlate.hosts import expected
from mcpdetect.model.inputs import Expectations, ExpectedHost
from mcpdetect.model.result import Finding, Result

__all__ = ["Asked", "Denied", "asked_for", "how_denied"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One host.

    Attributes:
        host: its name, or the address where no name was asked for.
        documented: the server's documentation names it; None where nobody has looked.
        source: where it is documented.
        why: rules that explain it, such as ``caller-argument``.
        where: the first evidence place.
    """

    host: str
    documented: bool | None
    source: str = ""
    why: tuple[str, ...] = ()
    where: str = ""


@dataclass(frozen=True, slots=True)
class Denied:
    """One way in which the denied network showed.

    Attributes:
        mode: the mode of denial inferred, ``unknown`` where the evidence does not tell.
        what: ``names``, ``tcp``, ``udp`` or another transport.
        hosts: how many destinations.
        where: the first evidence place.
    """

    mode: str
    what: str
    hosts: int
    where: str = ""


def asked_for(bundle: Path, documented: Sequence[ExpectedHost] | None) -> list[Asked]:
    """Return the hosts that a run asked for or contacted, sorted, its probes' own left out.

    Args:
        bundle: the run.
        documented: what the server's documentation names, None where nobody has looked.
    """
    nothing = Expectations("nothing", [])
    result = mcpdetect.check(
        bundle, checks=["egress.unexplained-host", "egress.direct-ip"], expectations=nothing, assurance="inferred"
    )
    known = Expectations("documented", list(documented or ()))
    found: dict[str, Asked] = {}
    for finding in (one for check in result.checks for one in check.findings):
        for host in _hosts(finding):
            entry = expected(known, [host], None)
            found.setdefault(
                host,
                Asked(
                    host,
                    None if documented is None else entry is not None,
                    entry.why if entry is not None else "",
                    tuple(sorted({one.rule for one in finding.explanations})),
                    _place(finding, bundle.name),
                ),
            )
    return [found[name] for name in sorted(found)]


def how_denied(result: Result, run: str) -> list[Denied]:
    """Return how the denied run of an audit showed its denial: one entry a mode and kind of attempt, sorted.

    Args:
        result: the audit's result, the denied run its last part.
        run: that run's name in places.
    """
    found: dict[tuple[str, str], list[Finding]] = {}
    for check in result.parts[-1].checks if result.parts else ():
        if check.check == "network.blocked":
            for finding in check.findings:
                transport = finding.facts.get("transport")
                what = str(transport) if transport else "names" if finding.facts.get("host") else "sockets"
                found.setdefault((str(finding.facts.get("denial") or "unknown"), what), []).append(finding)
    return [
        Denied(mode, what, len({one.identity for one in findings}), _place(findings[0], run))
        for (mode, what), findings in sorted(found.items())
    ]


def _hosts(finding: Finding) -> list[str]:
    names = finding.facts.get("names")
    if isinstance(names, list) and names:
        return names
    host = finding.facts.get("host") or finding.facts.get("address")
    return [str(host)] if host else []


def _place(finding: Finding, run: str) -> str:
    # strace.log.zst:41+57
    return f"{run}/{str(finding.where[0]).rpartition('/')[2]}"
