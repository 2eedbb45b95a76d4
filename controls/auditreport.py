"""What an audit prints about one server: steps with their evidence, hosts, denial, verdicts, and what broke."""

from __future__ import annotations

from collections.abc import Iterator

from controls.asked import Asked
from controls.auditing import Audit
from mcpdetect.model.result import CheckResult
from mcpdetect.model.text import shown
from mcpdetect.model.vocabulary import LEVELS

__all__ = ["told"]

_WORDS = {True: "ok", False: "broke", None: "-"}
_DOCUMENTED = {True: "documented", False: "not documented", None: "nobody looked up whether it is documented"}
_LONGEST = 300
_MOST = 5
"""Most findings of one check that are shown; the bundle has them all."""


def told(found: Audit) -> Iterator[str]:
    """Yield the lines about one server; whatever it chose to say is made inert.

    Args:
        found: the audit.
    """
    yield shown(f"{found.target}  {found.version}".rstrip())
    for step in found.steps:
        yield f"  {step.name:16} {_WORDS[step.ok]:6} {shown(step.detail, _LONGEST)}{_at(step.where)}"
    if found.sessions:
        yield from _hosts(found.asked)
        denied = [f"{one.what}: {one.mode} ×{one.hosts}{_at(one.where)}" for one in found.denied]
        yield f"  {'denial shows':16} {'; '.join(denied) or 'nothing was asked of the network'}"
    for check in found.result.checks if found.result is not None else ():
        yield from _check(check)
        if check.verdict == "not_observable" and found.result is not None:
            reasons = {one.reason for part in found.result.parts for one in part.checks if one.check == check.check}
            yield from (f"    {shown(reason, _LONGEST)}" for reason in sorted(reasons))
    broke = found.broke
    if broke is not None:
        yield f"  broke at {broke.name}: {shown(broke.detail, _LONGEST)}"
    if found.bundles:
        folder = found.bundles[0].parent
        before = f" ({' and '.join(found.kept)} recorded before)" if found.kept else ""
        # An installation recorded here, now or before, holds no session, and would leave checks of one unanswered.
        alone = not (folder / "install").exists()
        runs = f"{folder}/*" if alone else " ".join(str(one) for one in found.bundles)
        yield f"  evidence in {folder}{before}; all of it: mcpdetect check --audit {runs}"
    if found.install is not None:
        yield f"  evidence of the installation: mcpdetect check {found.install}"


def _hosts(asked: list[Asked]) -> Iterator[str]:
    head = "hosts asked for"
    for one in asked:
        word = "named by the caller" if "caller-argument" in one.why else _DOCUMENTED[one.documented]
        source = f", {one.source}" if one.documented else ""
        yield f"  {head:16} {shown(one.host, _LONGEST)} ({word}{shown(source, _LONGEST)}){_at(one.where)}"
        head = ""
    if not asked:
        yield f"  {head:16} none"


def _check(check: CheckResult) -> Iterator[str]:
    grave = [one for one in check.findings if one.level != LEVELS[0]]
    levels = [f"{sum(one.level == level for one in check.findings)} {level}" for level in reversed(LEVELS)]
    many = f" ({', '.join(one for one in levels if not one.startswith('0 '))})" if check.findings else ""
    yield f"  {check.check:25} {check.verdict}{many}"
    for one in grave[:_MOST]:
        run = str(one.facts.get("run", "")).rpartition("/")[2]
        where = f"{run}/{str(one.where[0]).rpartition('/')[2]}"
        yield f"    [{one.level}] {shown(one.title, _LONGEST)}{_at(where)}"
    if len(grave) > _MOST:
        yield f"    and {len(grave) - _MOST} more"


def _at(where: str) -> str:
    return f"  ({where})" if where else ""
