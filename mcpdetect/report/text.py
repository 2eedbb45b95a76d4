"""The text report: what was examined, the verdicts, the findings, what could not be seen, and what follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mcpdetect.data.coverage import status_of_check
from mcpdetect.model.result import CheckResult, Result
from mcpdetect.model.text import shown
from mcpdetect.model.vocabulary import LEVELS
from mcpdetect.report.layout import Role, Style, columns, counted, wrapped
from mcpdetect.report.outcome import EXIT_OK, Outcome, highest_level
from mcpdetect.report.text_findings import View, findings_section
from mcpdetect.report.text_head import head_section
from mcpdetect.report.text_unseen import notes_section, unseen_section
from mcpdetect.report.words import LEVEL_ROLES, VERDICTS

__all__ = ["text_report"]

_ORDER = list(VERDICTS)
_WIDE = 110
_WEAK = {
    "thin": "fewer than three labelled cases show it fire, or fewer than three stay silent",
    "unproved": "no labelled case shows that this check can fire and stay silent",
}
_KEEP = "\u00a0"


def text_report(
    results: Sequence[Result],
    end: Outcome,
    style: Style,
    *,
    bases: Sequence[str] = (),
    verbose: bool = False,
) -> str:
    """Return the report of one or more results, ending in a line break.

    Args:
        results: one for every run, or one for an audit.
        end: what they mean for the caller.
        style: width and colours.
        bases: for every result (of an audit: for every run) the folder in which its evidence lies, put before its
            places so that they can be opened; empty when their names lead there as they are.
        verbose: every finding and every place, the facts of findings, and what each check is blind to.
    """
    lines: list[str] = []
    folders = list(bases)
    for result in results:
        runs = result.parts or [result]
        own, folders = folders[: len(runs)], folders[len(runs) :]
        own += [""] * (len(runs) - len(own))
        views = [View(run, base, many=bool(result.parts)) for run, base in zip(runs, own, strict=True)]
        blocks = [
            head_section(result, style, "" if result.parts else own[0]),
            _verdicts(result.checks, style),
            _parts(views, style) if result.parts else [],
            findings_section(result, views, style, verbose=verbose),
            unseen_section(result, views, style),
            notes_section(result, views, style, verbose=verbose),
        ]
        for block in blocks:
            if block:
                lines += [*block, ""]
    lines += _summary(results, end, style)
    return style.encode("\n".join(lines) + "\n")


def _by_gravity(checks: Sequence[CheckResult]) -> list[CheckResult]:
    """Return the checks in the order of the table: detected first, gravest first, then by id."""

    def key(check: CheckResult) -> tuple[int, int, str]:
        level = highest_level(check)
        return _ORDER.index(check.verdict), -LEVELS.index(level) if level else 0, check.check

    return sorted(checks, key=key)


def _verdicts(checks: Sequence[CheckResult], style: Style) -> list[str]:
    if not checks:
        return [style.paint("No check ran.", "grave")]
    wide = style.width >= _WIDE
    rows = [["verdict", "check", "findings", "level", "proof", "events", "what it looks for"]]
    for check in _by_gravity(checks):
        symbol, words, _ = VERDICTS[check.verdict]
        rows.append(
            [
                f"{symbol} {words}",
                shown(check.check),
                f"{len(check.findings):,}" if check.findings else "",
                highest_level(check) or "",
                "" if check.verdict == "error" else check.proof,
                f"{check.examined:,}",
                shown(check.title),
            ]
        )
    keep = 7 if wide else 5
    cells = columns([row[:keep] for row in rows], limits=(0, 40), right=(2, 5))
    if wide:
        used = 2 + sum(len(cell) for cell in cells[0][:-1])
        cells = columns(
            [row[:keep] for row in rows], limits=(0, 40, 0, 0, 0, 0, max(20, style.width - used)), right=(2, 5)
        )
    lines = [f"  {style.paint(''.join(cells[0]).rstrip(), 'quiet')}"]
    for check, row in zip(_by_gravity(checks), cells[1:], strict=True):
        level = highest_level(check)
        role = LEVEL_ROLES[level] if level else VERDICTS[check.verdict][2]
        tail = "".join(row[4:]).rstrip()
        painted = style.paint(row[0], role) + row[1] + row[2] + (style.paint(row[3], role) if level else row[3])
        lines.append(f"  {painted}{tail}".rstrip())
        status = status_of_check(check.check)
        if status in _WEAK:
            lines.append("    " + style.paint(f"{status}: {_WEAK[status]}", "warn"))
    return lines


def _parts(views: Sequence[View], style: Style) -> list[str]:
    """The runs of an audit: what each had as evidence, and its own verdicts save the plain ``not detected``."""
    lines = [style.paint("RUNS", "title")]
    for view in views:
        checks = view.result.checks
        tally = Counter(check.verdict for check in checks)
        counts = ", ".join(f"{tally[word]} {VERDICTS[word][1]}" for word in _ORDER if tally[word])
        lines += [f"  {line}" for line in head_section(view.result, style, view.base, part=True)]
        lines += wrapped(counts or "no check", style.prose, "    verdicts  ")
        for check in _by_gravity(checks):
            if check.verdict != "not_detected":
                symbol = VERDICTS[check.verdict][0]
                lines += wrapped(
                    f"{symbol} {shown(check.check)}: {shown(check.reason, 300)}", style.prose, " " * 14, " " * 16
                )
    return lines


def _summary(results: Sequence[Result], end: Outcome, style: Style) -> list[str]:
    checks = [check for result in results for check in result.checks]
    tally = Counter(check.verdict for check in checks)
    findings = [finding for check in checks for finding in check.findings]
    told = []
    for word in _ORDER:
        if not tally[word]:
            continue
        text = f"{tally[word]} {VERDICTS[word][1]}"
        if word == "detected":
            level = max((finding.level for finding in findings), key=LEVELS.index)
            text += f" ({counted(len(findings), 'finding')}, highest {level})"
        told.append(text)
    total = counted(len(checks), "check")
    if len(results) > 1:
        total = f"{counted(len(results), 'run')}, {total}"
    # Spaces that do not break keep a number with what it counts.
    head = f"{total}: {', '.join(item.replace(' ', _KEEP) for item in told)}" if told else total
    tail = f"exit {end.code}: {shown(end.meaning)}"
    role: Role = "quiet" if end.code == EXIT_OK else "title"
    if len(head) + 3 + len(tail) <= style.prose:
        return [f"{head.replace(_KEEP, ' ')} · {style.paint(tail, role)}"]
    lines = [line.replace(_KEEP, " ") for line in wrapped(head, style.prose)]
    return lines + [style.paint(line, role) for line in wrapped(tail, style.prose)]
