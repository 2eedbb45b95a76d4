"""The page of audited servers, made from the registry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from controls.registry import Registry, Row

__all__ = ["registry_page"]

_HEAD = """<!-- Made from coverage/servers.json by tests/tools/refresh_servers.py; do not edit. -->

# Servers that were audited

Real MCP servers, installed by the ordinary package clients without running their install scripts, then recorded in the
recorder's cell: once with an open network that is a fake internet, once with every outgoing packet dropped in the
server's own namespace (`output-drop`). Every token they got is a canary. What stands here is what happened on that day
in that cell, no judgement: a call that ends in an error mostly met the fake internet's answer. A host is *documented*
where `controls/servers.yaml` names the place that documents it; *not documented* says that this list has no such
place; *not looked up* that nobody has looked. Findings that would accuse are withheld until a person has looked at
them: such a check says `withheld`, and hosts of such findings are left out.

`coverage/servers.json` holds every row with all its steps and their places in the evidence, and
`coverage/servers.schema.json` is its schema. `coverage/servers/` lists the packages and versions that each installation
resolved to; an audit installs those again. The evidence itself holds the servers' own texts and is not published: a row
is made again by its command,

```
python -m controls audit --shell netns npm:NAME@VERSION
python -m controls audit --shell microvm pypi:NAME==VERSION
```

which takes arguments, settings and pins from `controls/servers.yaml`.
"""


def registry_page(registry: Registry) -> str:
    """Return the page as Markdown.

    Args:
        registry: every row.
    """
    parts = [_HEAD, *_numbers(registry.servers)]
    for shell, title in (("netns", "In namespaces of one machine"), ("microvm", "In a guest")):
        rows = [row for row in registry.servers if row.shell == shell]
        if rows:
            parts += [f"\n## {title} (`--shell {shell}`)\n", *_table(rows)]
    parts += ["\n## What broke\n", *_broken(registry.servers)]
    parts += ["\n## What changed since the run before\n", *_changed(registry.servers)]
    return "\n".join(parts).rstrip() + "\n"


def _numbers(rows: Sequence[Row]) -> list[str]:
    lines = ["## Numbers\n", "| | netns | microvm |", "|---|---|---|"]
    shells = [[row for row in rows if row.shell == shell] for shell in ("netns", "microvm")]
    facts: list[tuple[str, list[int]]] = [
        ("servers audited", [len(one) for one in shells]),
        (
            "of them started, initialized, listed their tools and answered calls",
            [sum(row.works for row in one) for one in shells],
        ),
        ("of them the same when denied", [sum(row.works and row.survives is True for row in one) for one in shells]),
        ("tools listed", [sum(row.tools for row in one) for one in shells]),
        ("calls made, open network", [sum(row.calls.made for row in one) for one in shells]),
        ("calls answered", [sum(row.calls.answered for row in one) for one in shells]),
        ("servers that asked for no host", [sum(row.works and not row.hosts for row in one) for one in shells]),
    ]
    lines += [f"| {name} | {one} | {other} |" for name, (one, other) in facts]
    checks: Counter[tuple[str, str]] = Counter(
        (check, verdict) for row in rows for check, verdict in row.verdicts.items()
    )
    words = ("detected", "not_detected", "not_observable", "withheld", "error")
    lines += ["", f"| check, both shells | {' | '.join(words)} |", "|---|---|---|---|---|---|"]
    lines += [
        f"| `{check}` | {' | '.join(str(checks[check, word]) for word in words)} |"
        for check in sorted({check for check, _ in checks})
    ]
    return lines


def _table(rows: Iterable[Row]) -> list[str]:
    lines = [
        "Calls are those answered without an error / answered / made.\n",
        "| server | date | started | tools | calls | calls when denied | survives denial | the denial shows | hosts |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        status = {step.step: step.status for step in row.steps}
        survives = {True: "yes", False: "no", None: "-"}[row.survives]
        shows = ", ".join(f"{one.what}: {one.mode} ×{one.destinations}" for one in row.denial_shows) or "nothing asked"
        cells = [
            f"`{_cell(row.server)}`",
            str(row.date),
            {"ok": "yes", "broke": "no", "unreached": "-"}[status["starts"]],
            str(row.tools),
            f"{row.calls.good} / {row.calls.answered} / {row.calls.made}",
            f"{row.denied_calls.good} / {row.denied_calls.answered} / {row.denied_calls.made}",
            survives,
            shows if status["starts"] == "ok" else "-",
            _hosts(row),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _hosts(row: Row) -> str:
    words = {True: "documented", False: "not documented", None: "not looked up"}
    groups: dict[str, list[str]] = {}
    for one in row.hosts:
        word = "named by the caller" if "caller-argument" in one.explained else words[one.documented]
        groups.setdefault(word, []).append(_cell(one.host))
    return "; ".join(f"{word}: {', '.join(hosts)}" for word, hosts in sorted(groups.items())) or "none"


def _broken(rows: Iterable[Row]) -> list[str]:
    broken = [row for row in rows if row.status == "broke"]
    if not broken:
        return ["Nothing."]
    lines = [
        "The first step that did not go well.\n",
        "| server | shell | step | reason | place |",
        "|---|---|---|---|---|",
    ]
    for row in broken:
        where = next((step.where for step in row.steps if step.step == row.step), "")
        place = f"`{_cell(where)}`" if where else ""
        lines.append(f"| `{_cell(row.server)}` | {row.shell} | {row.step} | {_cell(row.reason or '')} | {place} |")
    return lines


def _changed(rows: Iterable[Row]) -> list[str]:
    lines = [
        f"- `{_cell(row.server)}` ({row.shell}), {one.fact}: {_cell(one.before) or 'none'} → {_cell(one.now) or 'none'}"
        for row in rows
        for one in row.changed
    ]
    return lines or ["Nothing."]


def _cell(text: str) -> str:
    """Return text that is inert in a Markdown table."""
    for mark in "\\`|*_<>[]":
        text = text.replace(mark, f"\\{mark}" if mark not in "<>`" else {"<": "&lt;", ">": "&gt;", "`": "'"}[mark])
    return text
