"""The page ``docs/what-we-cannot-see.md``, made from ``labels/blindspots.yaml``."""

from __future__ import annotations

from itertools import groupby

from mcpdetect.labels.blindspots import BlindSpot, BlindSpots

__all__ = ["blindspot_page"]

_HEAD = """\
# What we cannot see

<!-- Made from labels/blindspots.yaml by `python tests/tools/refresh_docs.py`; edit that file. -->

Every kind of evidence has ways round it. This page lists the ones we know: what is done, which channels do not show it
or show it wrongly, what is left behind, and what a correct check says where nothing else shows the act.

- *detected*: what is left is enough to find it.
- *not observable*: the claim must not be made; the report says so beside the verdict.
- *not detected*: nothing in any evidence tells. The statement is about this run, and no report may say more.

"""


def blindspot_page(spots: BlindSpots) -> str:
    """Return the page in Markdown."""
    shown = len(spots.shown)
    total = len(spots.entries)
    lines = [
        f"**{total} entries: {shown} with a recorded case that shows it, {total - shown} with no control yet.**",
        "",
        "| group | entries | shown by a recorded case | no control yet |",
        "|---|---|---|---|",
    ]
    groups = [(name, list(entries)) for name, entries in groupby(spots.entries, key=lambda entry: entry.group)]
    for name, entries in groups:
        number = sum(1 for entry in entries if entry.controls)
        lines.append(f"| {name} | {len(entries)} | {number} | {len(entries) - number} |")
    for name, entries in groups:
        lines += ["", f"## {name[0].upper()}{name[1:]}"]
        for entry in entries:
            lines += ["", *_entry(entry)]
    return _HEAD + "\n".join(lines) + "\n"


def _entry(entry: BlindSpot) -> list[str]:
    lines = [
        f"### {entry.id}",
        "",
        f"{entry.title}.",
        "",
        f"- Blind: {', '.join(entry.blind)}.",
        f"- What is left: {entry.residue}.",
        f"- A correct check: *{entry.verdict.replace('_', ' ')}*; {entry.then}.",
    ]
    if entry.checks:
        lines.append(f"- Spoils: {', '.join(f'`{check}`' for check in entry.checks)}.")
    if entry.losses:
        lines.append(f"- Reports say it with: {', '.join(f'`{word}`' for word in entry.losses)}.")
    if entry.controls:
        lines.append(f"- Shown by: {', '.join(f'`corpus/{case}`' for case in entry.controls)}.")
    else:
        lines.append("- Shown by: no control yet.")
    return lines
