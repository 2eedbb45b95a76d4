"""What only a whole run tells: the audited program never starts, ways out of a trace's sight were not traced."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hand_sources import HandSource, observed, where

from mcpdetect.engine.observability import clean_channel
from mcpdetect.engine.unseen import Watched
from mcpdetect.model.event import Event, FileOpen, ProcessStart
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Proof

RUN = Run(entry="/srv/server", declared=True)
FILTERED = {
    "process.start": "process.start was not traced in full: a child that strace did not follow would go unnoticed",
    "kernel.notable": "kernel.notable was not traced in full: "
    "calls made through io_uring, or from another namespace, would go unnoticed",
    "socket.connect": "socket.connect was not traced in full: "
    "work that is handed to a program outside the trace would go unnoticed",
}


def start(line: int, path: str, result: int | None = 0, how: Literal["clone", "exec"] = "exec") -> ProcessStart:
    return ProcessStart(where(line), line, "1", result, how=how, executable=path)


def opening(line: int) -> FileOpen:
    return FileOpen(where(line), line, "1", 3, path="/etc/passwd")


def log(*kinds: str, proof: Proof = "declared", losses: list[Loss] | None = None) -> Observation:
    watched = kinds or ("file.open", "process.start", "kernel.notable", "socket.connect")
    return replace(observed("syscalls", *watched, proof=proof, losses=losses), format="strace")


def told(events: list[Event], seen: Observation, run: Run = RUN, wanted: frozenset[str] | None = None) -> list[str]:
    watched = Watched(HandSource(events, [seen], run))
    list(watched.events(wanted))
    (observation,) = watched.observations()
    assert observation.losses[: len(seen.losses)] == seen.losses
    return [loss.detail for loss in observation.losses[len(seen.losses) :]]


NEVER = "the audited program, /srv/server, never starts in it"


@pytest.mark.parametrize("wanted", [None, frozenset({"file.open"}), frozenset({"process.start", "file.open"})])
def test_a_log_in_which_the_audited_program_never_starts_shows_something_else(wanted: frozenset[str] | None) -> None:
    opened = opening(9)
    assert told([start(1, "/bin/sh"), opened, start(2, "/srv/server")], log(), wanted=wanted) == []
    assert told([start(1, "/bin/sh"), opened], log(), wanted=wanted) == [NEVER]
    assert told([start(1, "/srv/server", result=None)], log(), wanted=wanted) == [NEVER]
    assert told([start(1, "/srv/server", how="clone")], log(), wanted=wanted) == [NEVER]
    assert told([opened], log(), Run(declared=True), wanted) == []


def test_only_wanted_events_are_handed_on_and_all_of_them() -> None:
    events: list[Event] = [opening(at) for at in range(3)]
    mixed: list[Event] = [events[0], start(5, "/bin/sh"), events[1], start(6, "/srv/server"), events[2]]
    assert list(Watched(HandSource(mixed, [log()], RUN)).events(frozenset({"file.open"}))) == events
    assert list(Watched(HandSource(mixed, [log()], RUN)).events(None)) == mixed
    assert list(Watched(HandSource(mixed, [log()], Run())).events(frozenset({"file.open"}))) == events


@pytest.mark.parametrize("kind", FILTERED)
def test_absence_means_nothing_where_a_way_out_of_sight_was_not_traced(kind: str) -> None:
    begun: list[Event] = [start(1, "/srv/server")]
    watched = {"file.open", *FILTERED} - {kind}
    assert told(begun, log(*watched)) == [FILTERED[kind]]
    part = Loss("filtered", f"{kind}: not traced: clone", touches=[kind])
    assert told(begun, log("file.open", *FILTERED, losses=[part])) == [FILTERED[kind]]
    assert told(begun, log("file.open", *FILTERED, losses=[replace(part, what="unfinished")])) == []
    # without a manifest nothing says whether such calls would have been shown
    assert told(begun, log(*watched, proof="inferred")) == []


def test_other_channels_are_left_as_they_are() -> None:
    capture = replace(observed("packets", "net.flow", proof="declared"), format="pcap")
    watched = Watched(HandSource([], [capture], RUN))
    assert list(watched.events()) == []
    assert watched.observations() == [capture]


def test_a_file_declared_to_end_early_does_not_watch_to_the_end() -> None:
    capture = replace(observed("packets", "net.flow", proof="declared"), complete=True)
    short = replace(capture, complete=False)
    assert clean_channel([capture], "packets", ("net.flow",))
    assert not clean_channel([short], "packets", ("net.flow",))
    assert not clean_channel([capture, short], "packets", ("net.flow",))
    assert clean_channel([replace(short, proof="inferred")], "packets", ("net.flow",))
