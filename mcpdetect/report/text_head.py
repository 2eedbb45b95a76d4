"""The head of the text report: which run, which evidence, how much of it, and why it is believed to have watched."""

from __future__ import annotations

from mcpdetect.model.observation import Observation
from mcpdetect.model.result import Result
from mcpdetect.model.text import shown
from mcpdetect.model.vocabulary import CHANNELS, Proof
from mcpdetect.report.layout import Style, columns, counted, moment, span, text_width, wrapped

__all__ = ["head_section"]

_RESTS_ON: dict[Proof, str] = {
    "absent": "not detected may rest on nothing at all",
    "inferred": "not detected may rest on channels known to watch only by their content",
    "declared": "not detected rests on channels declared or proved to have watched",
    "proved": "not detected rests on channels that probes prove to have watched",
}

# What an observation was counted in, the first one known; and the counts that tell of something missing.
_UNITS = ("lines", "packets", "messages", "records", "events")
_MISSING = ("unparsed", "dropped")


def head_section(result: Result, style: Style, base: str, *, part: bool = False) -> list[str]:
    """Return the lines that say what was examined.

    Args:
        result: the result of one run, or of an audit.
        style: width and colours.
        base: folder of the evidence, ``""`` when its names lead to it as they are.
        part: the run is part of an audit, whose head says what all runs have in common.
    """
    run = result.run
    lines = [style.paint(shown(run.id), "title")]
    facts: list[tuple[str, str]] = []
    if run.target and not part:
        facts.append(("target", shown(" ".join(run.target), 400)))
    mode = "not known" if run.mode == "unknown" else shown(run.mode)
    facts.append(("network", f"{mode} ({shown(run.denial)})" if run.denial and run.denial != run.mode else mode))
    if run.started_ns is not None:
        length = f", {span(run.ended_ns - run.started_ns)}" if run.ended_ns is not None else ""
        facts.append(("recorded", moment(run.started_ns) + length))
    if not part:
        facts.append(("assurance", f"{result.assurance}: {_RESTS_ON[result.assurance]}"))
    if result.parts:
        facts.append(("runs", ", ".join(shown(part.run.id) for part in result.parts)))
    for name, text in facts:
        lines += wrapped(text, style.prose, f"  {name:<10}")
    return lines if result.parts else lines + _evidence(result, style, base)


def _evidence(result: Result, style: Style, base: str) -> list[str]:
    seen = result.observations
    rows = [
        [
            f"{item.channel:<8}",
            shown(base + item.source, 200),
            shown(item.format),
            item.proof,
            _window(item),
            _extent(item),
        ]
        for item in sorted(seen, key=lambda item: CHANNELS.index(item.channel))
    ]
    lines = []
    laid = columns(rows)
    if any(text_width("  " + "".join(row[:-1]).rstrip()) > style.width for row in laid):
        for row in rows:
            lines.append(f"  {row[0]:<10}{row[1]}")
            lines += wrapped(", ".join(part for part in row[2:] if part), style.width, " " * 12)
        laid = []
    for row in laid:
        head = "  " + "".join(row[:-1]).rstrip()
        if text_width(head) + 2 + text_width(row[-1]) <= style.width or not row[-1]:
            lines.append(f"  {''.join(row)}".rstrip())
        else:
            lines += [head, *wrapped(row[-1], style.width, " " * 12)]
    absent = [channel for channel in CHANNELS if channel not in {item.channel for item in seen}]
    if absent:
        lines += [style.paint(line, "quiet") for line in wrapped(", ".join(absent), style.prose, "  absent    ")]
    return lines


def _window(item: Observation) -> str:
    if item.begin_ns is None or item.end_ns is None:
        return "no times"
    length = span(item.end_ns - item.begin_ns)
    return f"{moment(item.begin_ns, day=False)[:8]}Z {length}" if item.clock == "epoch" else length


def _extent(item: Observation) -> str:
    told = []
    for unit in _UNITS:
        if unit in item.counts:
            told.append(counted(item.counts[unit], unit.removesuffix("s"), unit))
            break
    told += [f"{item.counts[name]:,} {name}" for name in _MISSING if item.counts.get(name)]
    if not item.complete:
        told.append("end not seen")
    if item.scope:
        told.append(shown(item.scope, 80))
    return ", ".join(told)
