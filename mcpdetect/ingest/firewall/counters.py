"""Counters of an nftables listing, or of two: how many packets the rules that drop, reject or log have met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mcpdetect.errors import InputError, Malformed
from mcpdetect.ingest.adapter import EXCERPT, Declared
from mcpdetect.ingest.firewall.netfilter import action_of
from mcpdetect.ingest.firewall.nft import Listing, Rule, is_listing
from mcpdetect.ingest.firewall.nft_json import read_json_listing
from mcpdetect.ingest.firewall.nft_text import read_text
from mcpdetect.ingest.loglines import LineSource, LossBook
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import FirewallDrop
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where
from mcpdetect.model.vocabulary import Proof

__all__ = ["MAX_LISTING", "NftCounters"]

MAX_LISTING = 16 * 1024 * 1024
"""Longest listing read."""

_KINDS = ("firewall.drop",)
_Action = Literal["drop", "reject", "accept", "logged"]
_Key = tuple[object, ...]


@dataclass(slots=True)
class _Reading:
    """What one counter stood at: of which rule, what happened to its packets."""

    key: _Key
    where: Where
    action: _Action
    prefix: str
    packets: int


class NftCounters:
    """The counters of an nftables ruleset, as events: ``packets`` is how many, addresses are not known.

    ``prefix`` is the rule's log prefix, else its place: ``inet mcpdetect deny hook output``.

    Only rules that drop, reject or log count, and only a counter that no further condition follows: ``counter tcp
    dport 25 drop`` counts more than it drops. The last rule of a chain whose policy is drop, when it has no condition,
    counts what the policy drops. A rule or policy that drops without a counter is a loss: its packets cannot be known.
    A rule that both logs and drops also speaks in the kernel's log, about the same packets.

    Args:
        before: the listing made before the run; None: the rules were new, so the counters began at zero.
        after: the listing made after it.
        name: the name of ``after`` in every place; its path otherwise.
        declared: what a manifest says about it.

    Raises:
        InputError: a listing cannot be read, is none, or the two are of different forms.
    """

    def __init__(
        self,
        before: Path | None,
        after: Path | LineSource,
        name: str | None = None,
        declared: Declared | None = None,
    ) -> None:
        source = LineSource.of(after, name)
        self._name = source.name
        self._declared = declared
        self._after = _read(source)
        self._before = _read(LineSource(before)) if before is not None else None
        if self._before is not None and _handled(self._before) != _handled(self._after):
            raise InputError(
                "the two listings are of different forms, so their rules cannot be matched",
                file=self._name,
                hint="make both with the same command, best nft -j list ruleset",
            )
        self._begin()

    @property
    def observation(self) -> Observation:
        """What the listing can show; complete after ``events`` was read to its end."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield a ``firewall.drop`` for every counter that grew, and ``unparsed`` events."""
        self._begin()
        self._book = LossBook()
        after = self._after
        for problem in after.problems:
            self._book.add(
                "unparsed", f"a part of the listing was not understood: {problem.reason}", problem.where, _KINDS
            )
            self._counts["events"] += 1
            self._counts["unparsed"] += 1
            if wanted is None or "unparsed" in wanted:
                yield Unparsed(
                    problem.where,
                    None,
                    seen_in="firewall",
                    reason=problem.reason,
                    raw=problem.raw[:EXCERPT],
                    touches=list(_KINDS),
                )
        if after.cut:
            self._book.add("file-truncated", "the listing ends inside a table", None, _KINDS)
        readings = _readings(after, self._book)
        self._counts["counters"] = len(readings)
        for reading, packets in self._grown(readings):
            self._counts["events"] += 1
            self._counts["packets"] += packets
            if wanted is None or "firewall.drop" in wanted:
                yield FirewallDrop(
                    reading.where,
                    self._observation.end_ns,
                    action=reading.action,
                    packets=packets,
                    prefix=reading.prefix,
                )
        self._end(readings)

    def _grown(self, readings: list[_Reading]) -> Iterator[tuple[_Reading, int]]:
        earlier: dict[_Key, int] = {}
        if self._before is not None:
            earlier = {reading.key: reading.packets for reading in _readings(self._before, LossBook())}
        for reading in readings:
            packets = reading.packets - earlier.pop(reading.key, 0)
            if packets < 0:
                self._book.add(
                    "counter-reset",
                    "a counter fell: it was reset, and some of its packets are lost",
                    reading.where,
                    _KINDS,
                )
                packets = reading.packets
            if packets:
                yield reading, packets
        if earlier:
            self._book.add(
                "counter-gone",
                "rules that were there before are gone, and their counters",
                None,
                _KINDS,
                count=len(earlier),
            )

    def _begin(self) -> None:
        declared = self._declared or Declared()
        self._counts = {"rules": len(self._after.rules), "counters": 0, "packets": 0, "events": 0, "unparsed": 0}
        self._observation = Observation(
            channel="firewall",
            source=self._name,
            format=self._after.form,
            tool=declared.tool,
            options=list(declared.options or ()),
            proof="declared" if self._declared is not None else "inferred",
            clock="epoch" if declared.end_ns is not None else "none",
            begin_ns=declared.begin_ns,
            end_ns=declared.end_ns,
            complete=declared.complete,
            counts=self._counts,
            losses=list(declared.losses),
            scope=declared.scope,
        )

    def _end(self, readings: list[_Reading]) -> None:
        seen = self._observation
        if readings:
            proof: Proof = "declared" if self._declared is not None else "inferred"
            seen.watches = dict.fromkeys(_KINDS, proof)
            if self._before is None:
                self._book.add(
                    "from-zero",
                    "counters are taken to have begun at zero: there is no listing from before",
                    None,
                    note=True,
                )
        else:
            seen.proof = "absent"
            self._book.add(
                "no-counter",
                "no rule of this listing drops, rejects or logs and counts: it shows nothing",
                None,
                note=True,
            )
        seen.losses.extend(self._book.losses())


def _read(source: LineSource) -> Listing:
    form = is_listing(source.head)
    if form == "nft":
        listing = read_text(source.content(MAX_LISTING), source.name)
        listing.cut = listing.cut or bool(source.damaged)
        return listing
    if form == "nft-json":
        return read_json_listing(source.content(MAX_LISTING), source.name)
    raise Malformed("is no nftables listing", file=source.name, hint="nft list ruleset, or nft -j list ruleset")


def _handled(listing: Listing) -> tuple[str, bool]:
    return listing.form, any(rule.handle is not None for rule in listing.rules)


def _readings(listing: Listing, book: LossBook) -> list[_Reading]:
    """Return the counters that count blocked or logged packets; put what blocks uncounted into the book."""
    readings: list[_Reading] = []
    seen: dict[_Key, int] = {}
    named: dict[tuple[str, str, str], list[tuple[_Reading | None, Rule]]] = {}
    policies = _policy_rules(listing, book)
    for rule in listing.rules:
        if any(item.sort == "vmap" and _drops(listing, rule, item.name) for item in rule.statements):
            book.add("uncounted", "a verdict map drops packets that nothing counts", rule.where, _KINDS)
        action, blocking = _action(rule, policy=id(rule) in policies)
        at = _counter_at(rule)
        counter = rule.statements[at] if at is not None else None
        exact = at is not None and not any(item.sort in ("other", "vmap") for item in rule.statements[at + 1 :])
        packets = counter.packets if counter is not None else None
        if counter is not None and counter.name is not None:
            packets = listing.counters.get((*rule.chain[:2], counter.name))
        reading = None
        base: _Key = (*rule.chain, rule.handle, rule.text)
        seen[base] = seen.get(base, -1) + 1
        if action is not None and packets is not None and (exact or packets == 0):
            reading = _Reading((*base, seen[base]), rule.where, action, _prefix(listing, rule), packets)
        if counter is not None and counter.name is not None and packets is not None:
            named.setdefault((*rule.chain[:2], counter.name), []).append((reading, rule))
        elif reading is not None:
            readings.append(reading)
        if blocking and reading is None:
            _uncounted(rule, counter is not None and packets is None, book)
    for key, uses in named.items():
        # One counter that several rules share counts blocked packets only if all of them block or log.
        first = uses[0][0]
        if first is not None and all(reading is not None for reading, _ in uses):
            readings.append(_Reading(("counter", *key), first.where, first.action, first.prefix, first.packets))
        elif any(reading is not None and reading.packets for reading, _ in uses):
            book.add(
                "uncounted", "a counter is shared by rules that block and rules that do not", uses[0][1].where, _KINDS
            )
    return sorted(readings, key=lambda reading: reading.where.at)


def _uncounted(rule: Rule, numberless: bool, book: LossBook) -> None:
    if numberless:
        detail = "counters are listed without numbers (nft -s leaves them out)"
    elif _counter_at(rule) is not None:
        detail = "a rule blocks only some of the packets that it counts"
    else:
        detail = "a rule blocks packets that nothing counts"
    book.add("uncounted", detail, rule.where, _KINDS)


def _policy_rules(listing: Listing, book: LossBook) -> set[int]:
    """Return which last rules count what their chain's policy drops; policies that nothing counts go to the book."""
    last = {rule.chain: rule for rule in listing.rules}
    open_chain = next(reversed(listing.chains), None)  # of a cut listing: its last rule is not known
    counting = set()
    for key, chain in listing.chains.items():
        if chain.policy != "drop" or (listing.cut and key == open_chain):
            continue
        rule = last.get(key)
        always = rule is not None and not any(item.sort in ("other", "vmap") for item in rule.statements)
        verdict = next((item.word for item in rule.statements if item.sort == "verdict"), None) if rule else None
        if rule is not None and always and verdict is None and _counter_at(rule) is not None:
            counting.add(id(rule))
        elif not (always and verdict in ("drop", "reject", "accept", "goto")):
            book.add("uncounted", "a chain's policy drops packets that nothing counts", chain.where, _KINDS)
    return counting


def _action(rule: Rule, *, policy: bool) -> tuple[_Action | None, bool]:
    """Return what a rule does to its packets (None: nothing that counts here), and whether it blocks them."""
    verdict = next((item.word for item in rule.statements if item.sort == "verdict"), None)
    if verdict == "drop" or policy:
        return "drop", True
    if verdict == "reject":
        return "reject", True
    log = next((item for item in rule.statements if item.sort == "log"), None)
    if log is None:
        return None, False
    return ("accept" if verdict == "accept" else action_of(log.word)), False


def _counter_at(rule: Rule) -> int | None:
    return next((at for at in reversed(range(len(rule.statements))) if rule.statements[at].sort == "counter"), None)


def _drops(listing: Listing, rule: Rule, name: str | None) -> bool:
    return name is None or (*rule.chain[:2], name) in listing.dropping


def _prefix(listing: Listing, rule: Rule) -> str:
    """Return a rule's log prefix, else its place: ``inet mcpdetect deny hook output``."""
    log = next((item for item in rule.statements if item.sort == "log"), None)
    if log is not None and log.word.strip():
        return log.word.strip()
    chain = listing.chains.get(rule.chain)
    hook = f" hook {chain.hook}" if chain is not None and chain.hook else ""
    return " ".join(rule.chain) + hook
