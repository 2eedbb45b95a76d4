"""The fate of a name that was asked for: a name that cannot be resolved is often the only blocked attempt to see."""

from __future__ import annotations

from mcpdetect.correlate.denial import Judgement, RunView
from mcpdetect.correlate.names import Lookup
from mcpdetect.model.addresses import scope_of
from mcpdetect.model.vocabulary import DenialMode

__all__ = ["judge_lookup"]

_ERRNO_MODE: dict[str, DenialMode] = {
    "EPERM": "output-drop",
    "EACCES": "route-prohibit",
    "EINVAL": "route-blackhole",
    "ENETUNREACH": "no-route",
    "EHOSTUNREACH": "route-unreachable",
    "ECONNREFUSED": "rejected-on-path",
}
"""What an errno on a question's send says (cases measured per mechanism, DESIGN §6)."""


_PATIENCE_NS = 1_000_000_000
"""How long a question has to stay open to count as unanswered: resolvers ask again after one to five seconds."""


def judge_lookup(lookup: Lookup, view: RunView, answers_watched: bool) -> Judgement:
    """Return whether a name was kept from resolving, and how.

    Args:
        lookup: everything the run shows about the name.
        view: run-wide signs.
        answers_watched: system calls that receive answers were watched, so an answer's absence there means something.
    """
    sunk = bool(lookup.addresses) and all(scope_of(address) == "unspecified" for address in lookup.addresses)
    if lookup.policy and (sunk or not lookup.resolved):
        return Judgement(True, "policy", "the resolver's own configuration refused or sank it", [])
    if lookup.resolved:
        return _resolved(lookup, view, answers_watched)
    failing = [error for error in lookup.errors if error in _ERRNO_MODE]
    if failing:
        error = failing[0]
        count = sum(lookup.errors.values())
        return Judgement(True, _ERRNO_MODE[error], f"the question met {error} when it was sent ({count} times)", [])
    if not lookup.name:
        return Judgement(None, None, "its answers cannot be told from others", [])
    codes = {code for answers in lookup.rcodes.values() for code in answers}
    if "SERVFAIL" in codes or "REFUSED" in codes:
        code = "REFUSED" if "REFUSED" in codes else "SERVFAIL"
        return Judgement(True, "name-service", f"the resolver answered {code} to every question", [])
    if "NXDOMAIN" in codes:
        if view.denied:
            return Judgement(True, "name-service", "NXDOMAIN in a run whose network is declared denied", [])
        return Judgement(False, None, "NXDOMAIN: the name does not exist, or the resolver hides it", [])
    return _silent(lookup, view, answers_watched)


def _resolved(lookup: Lookup, view: RunView, answers_watched: bool) -> Judgement:
    """A name that some channel saw answered: it was denied only if the answer never reached the program."""
    asked = lookup.asked.get("syscalls", 0)
    lost = (
        answers_watched
        and (asked > len(lookup.types) or (asked and view.denied))
        and "syscalls" not in lookup.answered
        and "syscalls" not in lookup.rcodes
        and "packets" in lookup.answered
    )
    if lost:
        repeated = "the question was repeated and " if asked > len(lookup.types) else ""
        why = f"answers are on the wire, yet {repeated}no answer reached the program"
        return Judgement(True, "input-drop", why, [])
    return Judgement(False, None, "it was resolved", [])


def _silent(lookup: Lookup, view: RunView, answers_watched: bool) -> Judgement:
    """A name without any answer: silence has to be long enough, or repeated, to mean something."""
    asked = max(lookup.asked.values(), default=0)
    if not lookup.rcodes and lookup.asked.keys() == {"dns"}:
        return Judgement(False, None, "the log shows the question only", [])
    if not view.rejecting.isdisjoint(lookup.servers):
        return Judgement(True, "rejected-on-path", "the questions were answered with ICMP errors", [])
    repeated = asked > max(1, len(lookup.types))
    span = (lookup.last_ns or 0) - (lookup.t_ns or 0)
    seen = answers_watched or "packets" in lookup.asked
    if seen and (repeated or span >= _PATIENCE_NS or view.denied):
        if "dns" in lookup.asked:
            return Judgement(True, "name-service", f"asked {asked} times; the name server got it and said nothing", [])
        if "packets" not in lookup.asked and view.lost_datagrams and view.captured(lookup.t_ns):
            why = f"asked {asked} times without an error, yet nothing at all is on the captured wire"
            return Judgement(True, "link-down", why, [])
        return Judgement(True, "dropped-on-path", f"asked {asked} times, never answered", [])
    return Judgement(None, None, "asked once, no answer seen: lost, slow or blocked", [])
