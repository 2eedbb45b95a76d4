"""Deciding what could have been seen: a detector's needs against the observations of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mcpdetect.contract import AnyOf, Need, Spec
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.result import Limit
from mcpdetect.model.vocabulary import PROOFS, Channel, Proof, proof_at_least

__all__ = ["Assessment", "assess", "clean_channel", "clean_watch", "losses_touching"]

LOOPBACK_SCOPE = "loopback"
"""Scope of a capture on the loopback interface: it cannot show what leaves."""


@dataclass(slots=True)
class Assessment:
    """What a run lets one check claim.

    Attributes:
        observable: every need is met, strongly enough and without a loss that could hide the fact.
        proof: the weakest proof the claim would rest on.
        limits: why not, or what stands beside the claim.
        seen: some alternative of every group watched at all, whatever it lost: the check can detect.
    """

    observable: bool
    proof: Proof
    seen: bool
    limits: list[Limit] = field(default_factory=list)


def losses_touching(observation: Observation, kinds: Iterable[str]) -> Iterator[Loss]:
    """Yield the losses of an observation that could hide an event of one of ``kinds``."""
    wanted = set(kinds)
    for loss in observation.losses:
        if not loss.note and (not loss.touches or wanted.intersection(loss.touches)):
            yield loss


def _watch_proof(observation: Observation, channel: Channel, kinds: Iterable[str]) -> Proof:
    """Return the weakest proof with which an observation watched all of ``kinds`` (``absent``: it did not)."""
    if observation.channel != channel or observation.scope == LOOPBACK_SCOPE:
        return "absent"
    weakest: Proof = observation.proof
    for kind in kinds:
        proof = observation.watches.get(kind.removeprefix("data:"), "absent")
        if PROOFS.index(proof) < PROOFS.index(weakest):
            weakest = proof
    return weakest


def clean_watch(observation: Observation, channel: Channel, kinds: Iterable[str]) -> bool:
    """Return whether an observation watched all of ``kinds`` and lost nothing that touches them."""
    kinds = tuple(kinds)
    return _watch_proof(observation, channel, kinds) != "absent" and not any(losses_touching(observation, kinds))


@dataclass(slots=True)
class _Met:
    """How well one alternative is met by one observation, best first when sorted."""

    proof: Proof
    losses: list[tuple[str, Loss]]
    need: Need
    source: str
    complete: bool

    def rank(self, least: Proof) -> tuple[bool, bool, int]:
        return (self.complete and not self.losses, proof_at_least(self.proof, least), PROOFS.index(self.proof))


def assess(spec: Spec, observations: list[Observation], least: Proof) -> Assessment:
    """Return what the observations let a check claim when its proof must be ``least`` or stronger."""
    result = Assessment(observable=True, proof="proved", seen=True)
    for group in spec.needs:
        best = _best(group, observations, least)
        if best is None:
            result.observable = result.seen = False
            result.proof = "absent"
            result.limits.append(_missing(group, observations))
            continue
        if PROOFS.index(best.proof) < PROOFS.index(result.proof):
            result.proof = best.proof
        if not proof_at_least(best.proof, least):
            result.observable = False
            result.limits.append(
                Limit(
                    "weak-proof",
                    f"{group.purpose}: {best.source} is only {best.proof} to have watched {best.need}, "
                    f"{least} is asked for",
                )
            )
        if spec.complete_run and not best.complete:
            result.observable = False
            detail = f"{best.source}: nothing says that it was recorded until the program ended"
            result.limits.append(Limit("incomplete", detail))
        for source, loss in best.losses:
            result.observable = False
            result.limits.append(Limit(loss.what, f"{source}: {loss.detail}", True, loss.where, loss.count))
    result.limits.extend(_notes(spec, observations, result.limits))
    return result


def _best(group: AnyOf, observations: list[Observation], least: Proof) -> _Met | None:
    best: _Met | None = None
    for need in group.needs:
        for observation in observations:
            proof = _watch_proof(observation, need.channel, need.kinds)
            if proof == "absent":
                continue
            losses = _channel_losses(observation, need, observations)
            # A manifest knows whether the recording lasted; without one only losses (a cut file, no exit) can tell.
            complete = observation.complete or PROOFS.index(observation.proof) < PROOFS.index("declared")
            met = _Met(proof, losses, need, observation.source, complete)
            if best is None or met.rank(least) > best.rank(least):
                best = met
    return best


def _channel_losses(observation: Observation, need: Need, observations: list[Observation]) -> list[tuple[str, Loss]]:
    """Return what the files of a need's channel lost, each loss with its file, ``observation`` first.

    Files of one channel cover different parts of the world, such as two process trees or two interfaces: what one
    of them lost is in no other.
    """
    others = [
        item
        for item in observations
        if item is not observation and item.channel == need.channel and item.scope != LOOPBACK_SCOPE
    ]
    return [(item.source, loss) for item in (observation, *others) for loss in losses_touching(item, need.kinds)]


def clean_channel(observations: list[Observation], channel: Channel, kinds: Iterable[str]) -> bool:
    """Return whether a channel watched all of ``kinds`` to the end and no file of it lost what touches them."""
    kinds = tuple(kinds)
    own = [item for item in observations if item.channel == channel and item.scope != LOOPBACK_SCOPE]
    return any(clean_watch(item, channel, kinds) for item in own) and not any(
        _cut_short(item) or any(losses_touching(item, kinds)) for item in own
    )


def _cut_short(observation: Observation) -> bool:
    """Return whether a manifest says that a file ends before the run does: what is not in it may have come later."""
    return not observation.complete and PROOFS.index(observation.proof) >= PROOFS.index("declared")


def _missing(group: AnyOf, observations: list[Observation]) -> Limit:
    """Say what is missing: the channel, or some of what it would have had to watch."""
    parts = []
    recorded = False
    for need in group.needs:
        own = [item for item in observations if item.channel == need.channel and item.scope != LOOPBACK_SCOPE]
        if not own:
            parts.append(f"no {need.channel} evidence")
            continue
        recorded = True
        kinds = list(dict.fromkeys(kind.removeprefix("data:") for kind in need.kinds))
        unwatched = min(
            ([kind for kind in kinds if item.watches.get(kind, "absent") == "absent"] for item in own), key=len
        )
        names = ", ".join(item.source for item in own)
        parts.append(f"{names} never showed {', '.join(unwatched)}" if unwatched else f"{names} may not have run")
    what = "not-watched" if recorded else "missing-channel"
    return Limit(what, f"{group.purpose}: {'; '.join(dict.fromkeys(parts))}")


def _notes(spec: Spec, observations: list[Observation], said: list[Limit]) -> Iterator[Limit]:
    """Yield losses of needed channels that hide nothing here, as notes."""
    channels = {need.channel for group in spec.needs for need in group.needs}
    kinds = {kind for group in spec.needs for need in group.needs for kind in need.kinds}
    known = {limit.detail for limit in said}
    for observation in observations:
        if observation.channel not in channels or observation.scope == LOOPBACK_SCOPE:
            continue
        for loss in losses_touching(observation, kinds):
            detail = f"{observation.source}: {loss.detail}"
            if detail not in known:
                known.add(detail)
                yield Limit(loss.what, detail, False, loss.where, loss.count)
