"""Probes in logs that show less of them: cut strings, no programs."""

import pytest
from probe_log import AFTER, BEFORE, Log, lines, passed

from mcpdetect.model.event import ProcessStart
from mcpdetect.model.sockets import SocketConnect


def cut(event: ProcessStart, size: int) -> ProcessStart:
    """Return a start as ``strace -s size`` shows it."""
    event.argv, event.argv_cut = [word[:size] for word in event.argv or []], True
    return event


@pytest.mark.parametrize("size", [0, 3, 6, 15])
def test_a_log_of_cut_strings_goes_by_who_started_what(size: int) -> None:
    log = Log()
    events = [
        cut(log.execed("1", None, "/run/probe", "around", BEFORE.nonce), size),
        log.forked("2", "1"),
        cut(log.execed("2", "1", "/run/probe", "before", BEFORE.nonce), size),
        log.opened("2", "/x"),
        cut(log.execed("3", "1", "/bin/target", "after", AFTER.nonce), size),
        cut(log.execed("4", "3", "/bin/sh", "after", AFTER.nonce), size),
        log.opened("4", "/home/dev/.ssh/id_ed25519"),
        cut(log.execed("5", "1", "/run/probe", "after", AFTER.nonce), size),
        log.opened("5", "/y"),
        cut(log.execed("6", "1", "/run/other", "other", "words"), size),
    ]
    told = [event.where.at for event in passed(events) if event.kind != "probe"]
    assert told == ([1, 2, 5, 6, 7, 10])
    # Without a known target anything could be it.
    assert lines(event for event in passed(events, None) if event.kind != "probe") == list(range(1, 11))


def test_a_log_without_programs_goes_by_the_exact_act() -> None:
    log = Log()

    def connected(process: str, address: str) -> SocketConnect:
        return SocketConnect(log.at(), 5, "connect", 0, process=process, address=address, port=BEFORE.port)

    events = [
        ProcessStart(log.at(), 1, "read", 0, how="seen", process="1"),
        log.forked("2", "1"),
        connected("2", BEFORE.address4),
        connected("2", "203.0.113.7"),
        log.forked("3", "1"),
        connected("3", AFTER.address4),
    ]
    assert lines(event for event in passed(events) if event.kind != "probe") == [1, 2, 4, 5, 6]
    shown = [log.execed("1", None, "/bin/sh"), *events[1:]]
    assert len([event for event in passed(shown) if event.kind != "probe"]) == 6
