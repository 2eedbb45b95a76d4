"""The registry of audited servers: facts only, dated, reproducible; what accuses waits for a person to have looked."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from controls.auditing import Audit
from controls.recorder.errors import RecorderError
from mcpdetect.version import VERSION

__all__ = ["REGISTRY_SCHEMA", "update"]

REGISTRY_SCHEMA = "mcpdetect.servers/0"
"""Name and version of the document."""

_COMPARED = ("version", "status", "step", "verdicts")


def update(path: Path, audits: Iterable[Audit], shell: str, today: datetime.date) -> dict[str, Any]:
    """Put audits into a registry file, in place of what it had of the same servers, and return its content.

    Args:
        path: the file; made if it is not there.
        audits: what became of each server.
        shell: where they ran.
        today: the date of the audits.

    Raises:
        RecorderError: the file is no registry.
    """
    known: dict[str, dict[str, Any]] = {}
    if path.exists():
        try:
            data = json.loads(path.read_text())
        except ValueError as error:
            raise RecorderError(f"{path} is no {REGISTRY_SCHEMA}: {error}") from error
        if not isinstance(data, dict) or data.get("schema") != REGISTRY_SCHEMA:
            raise RecorderError(f"{path} is no {REGISTRY_SCHEMA}; name another file")
        known = {entry["server"]: entry for entry in data["servers"]}
    for audit in audits:
        entry = _entry(audit, shell, today)
        before = known.get(audit.target)
        if before is not None:
            entry["changed"] = {
                name: [before.get(name), entry[name]] for name in _COMPARED if before.get(name) != entry[name]
            }
        known[audit.target] = entry
    content = {"schema": REGISTRY_SCHEMA, "servers": [known[name] for name in sorted(known)]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n")
    return content


def _entry(audit: Audit, shell: str, today: datetime.date) -> dict[str, Any]:
    broke = audit.broke
    return {
        "server": audit.target,
        "version": audit.version,
        "date": today.isoformat(),
        "command": f"python -m controls audit --shell {shell} {audit.target}",
        "mcpdetect": VERSION,
        "status": "ok" if broke is None else "broke",
        "step": None if broke is None else broke.name,
        "reason": None if broke is None else broke.detail[:400],
        "steps": {step.name: step.detail[:400] for step in audit.steps},
        "verdicts": {
            one.check: "withheld" if any(item.level == "accusing" for item in one.findings) else one.verdict
            for one in (audit.result.checks if audit.result is not None else ())
        },
        "changed": {},
    }
