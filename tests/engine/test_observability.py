"""What a run lets a check claim: needs, proofs, losses, and files of one channel together."""

from __future__ import annotations

import pytest
from hand_sources import HandSource, observed, where

from mcpdetect.contract import AnyOf, Need, Spec
from mcpdetect.engine.context import RunContext
from mcpdetect.engine.observability import assess, clean_channel, clean_watch, losses_touching
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.result import Limit
from mcpdetect.model.vocabulary import Proof

OPENS = Need("syscalls", ("file.open", "file.read"))
SENDS = Need("syscalls", ("socket.send", "data:socket.send"))
FLOWS = Need("packets", ("net.flow",))


def spec(*groups: AnyOf) -> Spec:
    needs = groups or (AnyOf("opens", OPENS),)
    return Spec(id="test.x", version=1, claim="c", kinds=("file.open",), needs=needs, blind_to=("b",))


def trace(*losses: Loss, source: str = "a.log", proof: Proof = "declared") -> Observation:
    return observed(
        "syscalls", "file.open", "file.read", "socket.send", losses=list(losses), source=source, proof=proof
    )


def test_a_need_is_met_by_a_clean_watch_with_its_weakest_proof() -> None:
    watch = trace()
    watch.watches["file.read"] = "inferred"
    assessment = assess(spec(), [watch], "inferred")
    assert (assessment.observable, assessment.seen, assessment.proof, assessment.limits) == (True, True, "inferred", [])
    weak = assess(spec(), [watch], "declared")
    assert (weak.observable, weak.seen, weak.proof) == (False, True, "inferred")
    assert weak.limits == [
        Limit(
            "weak-proof",
            "opens: a.log is only inferred to have watched syscalls (file.open, file.read), declared is asked for",
        )
    ]


def test_every_group_must_be_met() -> None:
    both = spec(AnyOf("opens", OPENS), AnyOf("flows", FLOWS))
    assessment = assess(both, [trace()], "inferred")
    assert (assessment.observable, assessment.seen, assessment.proof) == (False, False, "absent")
    assert assessment.limits == [Limit("missing-channel", "flows: no packets evidence")]
    assert assess(both, [trace(), observed("packets", "net.flow", source="c.pcap")], "inferred").observable


def test_a_loss_in_one_file_of_a_channel_is_not_made_good_by_another_file_of_it() -> None:
    loss = Loss("no-exit", "it ends before its program", 1, where(9, "b.log"))
    clean, lossy = trace(), trace(loss, source="b.log")
    for files in ([clean, lossy], [lossy, clean]):
        assessment = assess(spec(), files, "inferred")
        assert (assessment.observable, assessment.seen) == (False, True)
        assert assessment.limits == [Limit("no-exit", "b.log: it ends before its program", True, where(9, "b.log"), 1)]
        assert clean_channel(files, "syscalls", OPENS.kinds) is False
    assert clean_watch(clean, "syscalls", OPENS.kinds) is True


def test_a_file_that_watched_nothing_of_the_kind_still_tells_what_it_lost() -> None:
    other = observed("syscalls", "socket.open", source="b.log", losses=[Loss("untraced-process", "a child")])
    assert assess(spec(), [trace(), other], "inferred").observable is False
    other.losses = [Loss("string-cut", "cut", touches=["data:socket.send"])]
    assert assess(spec(), [trace(), other], "inferred").observable is True


def test_a_loss_of_payload_touches_only_needs_of_payload() -> None:
    cut = Loss("string-cut", "2 strings", 2, touches=["data:socket.send"])
    assert assess(spec(AnyOf("sends", SENDS)), [trace(cut)], "inferred").observable is False
    assert assess(spec(), [trace(cut)], "inferred").observable is True
    assert list(losses_touching(trace(cut), ("data:socket.send",))) == [cut]
    assert list(losses_touching(trace(cut), ("socket.send",))) == []


def test_a_note_lowers_nothing_and_a_loss_without_kinds_lowers_all() -> None:
    note = Loss("io_uring", "made, never entered", note=True)
    total = Loss("no-exit", "cut")
    assert list(losses_touching(trace(note, total), ("file.open",))) == [total]
    assert assess(spec(), [trace(note)], "inferred").limits == []


def test_the_cleaner_alternative_is_taken_and_the_other_loss_is_told() -> None:
    either = spec(AnyOf("contacts", FLOWS, Need("syscalls", ("socket.send",))))
    lossy = trace(Loss("io_uring", "rings", touches=["socket.send"]))
    assessment = assess(either, [lossy, observed("packets", "net.flow", source="c.pcap")], "inferred")
    assert (assessment.observable, assessment.limits) == (True, [Limit("io_uring", "a.log: rings", False)])


def test_what_is_missing_is_named_by_channel_or_by_kind() -> None:
    assert assess(spec(), [observed("syscalls", "file.open", source="a.log")], "inferred").limits == [
        Limit("not-watched", "opens: a.log never showed file.read")
    ]
    assert assess(spec(), [], "inferred").limits == [Limit("missing-channel", "opens: no syscalls evidence")]


@pytest.mark.parametrize("proof", ["absent", "inferred", "declared", "proved"])
def test_an_observation_is_no_stronger_than_its_own_proof(proof: Proof) -> None:
    watch = trace(proof="proved")
    watch.proof = proof
    assessment = assess(spec(), [watch], "proved")
    assert (assessment.proof, assessment.observable) == (proof, proof == "proved")


def test_a_loopback_capture_is_no_channel_at_all() -> None:
    loopback = observed("packets", "net.flow", source="lo.pcap", losses=[Loss("dropped", "12")])
    loopback.scope = "loopback"
    outer = observed("packets", "net.flow", source="c.pcap")
    assert clean_channel([loopback], "packets", ("net.flow",)) is False
    assert clean_channel([loopback, outer], "packets", ("net.flow",)) is True
    assert assess(spec(AnyOf("flows", FLOWS)), [loopback, outer], "inferred").limits == []


def test_a_context_answers_by_channel_and_counts_repeated_limits() -> None:
    context = RunContext(HandSource([], [trace()]), {}, None, None)
    assert context.watched("syscalls", "file.open")
    assert not context.watched("syscalls", "file.open", "net.flow")
    assert not context.watched("packets", "net.flow")
    context.limit("x", "detail", hides=False)
    context.limit("x", "detail", count=3)
    assert context.limits == [Limit("x", "detail", True, None, 4)]
