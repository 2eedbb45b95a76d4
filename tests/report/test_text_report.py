"""The text report, compared word for word with the files under ``golden/``."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from report_samples import check, finding, full, observation, result, run

from mcpdetect.model.observation import Loss
from mcpdetect.model.place import Where
from mcpdetect.model.result import Limit, Result
from mcpdetect.report.layout import Style, text_width
from mcpdetect.report.outcome import Outcome, Unreadable, outcome
from mcpdetect.report.text import text_report

GOLDEN = Path(__file__).parent / "golden"
REFRESH = "MCPDETECT_REFRESH_GOLDEN=1 python -m pytest tests/report/test_text_report.py"


def same_as_golden(name: str, text: str) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("MCPDETECT_REFRESH_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), (
        f"golden/{name}.txt differs; if that is right, refresh it: {REFRESH}"
    )


def audit() -> Result:
    opened = result(
        check("egress.direct-ip", "detected", findings=[finding(1), finding(2)], reason="2 findings"),
        check("network.blocked", "not_detected", reason="no attempt was blocked"),
        run=run("open"),
    )
    denied = result(
        check("egress.direct-ip", "detected", findings=[finding(9)], reason="1 finding"),
        check(
            "network.blocked",
            "not_observable",
            reason="trace.log: strings were cut",
            limits=[Limit("string-cut", "trace.log: strings were cut", True, Where("trace.log", 7), 3)],
        ),
        run=run("denied", mode="denied", denial="output-drop"),
    )
    overall = [
        check("egress.direct-ip", "detected", findings=[finding(1)], reason="open: 2 findings; denied: 1 finding"),
        check("network.blocked", "not_observable", reason="denied: trace.log: strings were cut"),
    ]
    notes = ["a run with the network denied shows attempts"]
    return result(
        *overall, run=run("audit", mode="open + denied"), observations=[], parts=[opened, denied], notes=notes
    )


def test_a_result_with_everything_in_80_columns() -> None:
    done = full()
    same_as_golden("full-80", text_report([done], outcome([done]), Style(width=80), bases=["runs/open/"]))


def test_a_result_with_everything_in_120_columns() -> None:
    done = full()
    same_as_golden("full-120", text_report([done], outcome([done]), Style(width=120), bases=["runs/open/"]))


def test_verbose_lists_every_place_fact_and_blind_spot() -> None:
    done = full()
    same_as_golden("full-verbose", text_report([done], outcome([done]), Style(width=100), verbose=True))


def test_colours() -> None:
    done = full()
    text = text_report([done], outcome([done]), Style(width=100, color=True))
    same_as_golden("full-color", text)
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert bare == text_report([done], outcome([done]), Style(width=100))


def test_an_output_that_carries_only_ascii() -> None:
    done = full()
    text = text_report([done], outcome([done]), Style(width=100, plain=True))
    same_as_golden("full-ascii", text)
    assert text.isascii()


def test_nothing_detected_and_nothing_missing() -> None:
    done = result(check("network.blocked", "not_detected"))
    same_as_golden("quiet", text_report([done], outcome([done]), Style(width=100)))


def test_an_audit_shows_each_run_and_opens_places_in_its_folder() -> None:
    done = audit()
    text = text_report([done], outcome([done]), Style(width=100), bases=["runs/open/", "runs/denied/"])
    same_as_golden("audit", text)


def test_the_same_loss_in_two_runs_of_an_audit_is_told_for_each() -> None:
    done = audit()
    done.parts[0].observations[0].losses.append(Loss("unparsed", "lines not understood", 2, Where("trace.log", 3)))
    done.parts[1].observations[0].losses.append(Loss("unparsed", "lines not understood", 5, Where("trace.log", 4)))
    done.parts[1].observations[0].losses.append(Loss("no-clock", "no times"))
    for part in done.parts:
        part.checks[1].limits.append(Limit("not-configured", "no secrets were given"))
    text = text_report([done], outcome([done]), Style(width=100), bases=["runs/open/", "runs/denied/"])
    assert "  - lines not understood ×2 (first at runs/open/trace.log:3)\n" in text
    assert "  - lines not understood ×5 (first at runs/denied/trace.log:4)\n" in text
    assert "  - denied: trace.log: no times\n" in text
    assert text.count("no secrets were given") == 1


def test_several_runs_and_one_that_could_not_be_read() -> None:
    first = result(check("network.blocked", "not_detected"), run=run("a"))
    second = result(
        check("network.blocked", "detected", findings=[finding(level="info")]), run=run("b", mode="unknown")
    )
    end = outcome([first, second], unreadable=[Unreadable("c/", "c/: is empty")])
    same_as_golden("several", text_report([first, second], end, Style(width=100), bases=["a/", "b/"]))


def test_no_run_could_be_read() -> None:
    end = outcome([], unreadable=[Unreadable("a", "a: is empty"), Unreadable("b", "b: is empty")])
    assert text_report([], end, Style()) == "0 checks · exit 4: a and b could not be read\n"


def test_a_result_without_checks_says_so_in_the_place_of_the_table() -> None:
    done = result()
    same_as_golden("no-checks", text_report([done], outcome([done]), Style(width=100)))


def test_many_findings_are_counted_not_dropped() -> None:
    many = [
        finding(n, "accusing" if n == 40 else "suspicious", title=f"connected to 203.0.113.{n}:443") for n in range(50)
    ]
    done = result(check("egress.direct-ip", "detected", findings=many))
    short = text_report([done], outcome([done]), Style(width=100))
    assert short.count("[suspicious]") == 11
    assert short.count("[accusing]") == 1
    assert short.index("[accusing]") < short.index("[suspicious]")
    assert "\n  … 38 more findings (38 suspicious): -v lists all\n" in short
    everything = text_report([done], outcome([done]), Style(width=100), verbose=True)
    assert everything.count("[suspicious]") == 49
    assert "more finding" not in everything


def test_the_same_limit_of_several_checks_is_told_once_with_its_count() -> None:
    cut = Limit("string-cut", "trace.log: strings were cut", True, Where("trace.log", 7), 31)
    done = result(
        *(check(f"a.check-{n}", "not_observable", reason=f"reason {n}", limits=[cut]) for n in range(6)),
    )
    text = text_report([done], outcome([done]), Style(width=200))
    told = "  - strings were cut ×31 (first at trace.log:7)\n"
    assert text.count("strings were cut") == text.count(told) == 1
    assert "may hide a fact from a.check-0, a.check-1, a.check-2, a.check-3 and 2 more checks\n" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_no_line_is_wider_than_asked_unless_it_is_a_place_or_a_table(width: int) -> None:
    done = full()
    text = text_report([done], outcome([done]), Style(width=width))
    prose = [line for line in text.splitlines() if line.startswith(("    ", "      ")) and "trace.log" not in line]
    assert len(prose) > 10
    assert [line for line in prose if text_width(line) > width and " " in line.strip().partition("  ")[2].strip()] == []
    if width >= 80:
        assert [line for line in text.splitlines() if text_width(line) > width] == []


def test_wide_characters_take_two_columns() -> None:
    done = result(
        check("egress.direct-ip", "detected", findings=[finding(reason="漢字 " * 40, where=[Where("trace.log", 1)])])
    )
    text = text_report([done], outcome([done]), Style(width=60))
    lines = [line for line in text.splitlines() if "漢字" in line]
    assert len(lines) == 4
    assert all(text_width(line) <= 60 for line in lines)


def test_the_words_that_would_promise_too_much_never_occur() -> None:
    texts = [text_report([one], outcome([one]), Style()) for one in (full(), audit(), result(check()), result())]
    assert len(texts) == 4
    assert [text for text in texts if re.search(r"(?i)\b(clean|safe|secure|ok|pass(ed)?)\b", text)] == []


def test_an_observation_of_another_clock_shows_a_length_and_no_hour() -> None:
    done = result(check(), observations=[observation(clock="relative", begin_ns=0, end_ns=90_000_000_000)])
    text = text_report([done], Outcome(0, "no finding"), Style(width=100))
    assert "  syscalls  trace.log  strace  declared  1 min 30 s  10,123 lines\n" in text


def test_evidence_with_long_names_is_told_in_two_lines_each() -> None:
    done = result(
        check(),
        observations=[
            observation(source=f"corpus/egress/direct-ip/node-tcp4/{'x' * 20}/strace.log.zst"),
            observation("packets", "capture.pcap", "pcap", counts={"packets": 9}, complete=False),
        ],
    )
    text = text_report([done], outcome([done]), Style(width=80))
    assert (
        f"  syscalls  corpus/egress/direct-ip/node-tcp4/{'x' * 20}/strace.log.zst\n"
        "            strace, declared, 12:19:52Z 11.2 s, 10,123 lines\n"
        "  packets   capture.pcap\n"
        "            pcap, declared, 12:19:52Z 11.2 s, 9 packets, end not seen\n"
    ) in text
