"""The Python API: open evidence, run checks, get a result.

>>> import mcpdetect                                                      # doctest: +SKIP
>>> source = mcpdetect.open_trace("corpus/egress/direct-ip/python-tcp")   # doctest: +SKIP
>>> result = mcpdetect.check(source, checks=["egress.direct-ip"])         # doctest: +SKIP
>>> result.checks[0].verdict                                              # doctest: +SKIP
'detected'
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcpdetect.data.baseline import load_baseline
from mcpdetect.data.inputs import load_expectations, load_secrets
from mcpdetect.engine.audit import join_runs
from mcpdetect.engine.description import described
from mcpdetect.engine.discovery import select
from mcpdetect.engine.run import run_checks
from mcpdetect.ingest.open import open_evidence_files, open_trace
from mcpdetect.model.inputs import Baseline, Expectations, Secrets
from mcpdetect.model.result import Result
from mcpdetect.model.trace import TraceSource
from mcpdetect.model.vocabulary import Proof
from mcpdetect.version import GENERATOR

__all__ = [
    "audit",
    "check",
    "describe",
    "load_baseline",
    "load_expectations",
    "load_secrets",
    "open_evidence_files",
    "open_trace",
]


def check(
    source: TraceSource | str | Path,
    *,
    checks: Sequence[str] | None = None,
    secrets: Secrets | Path | None = None,
    expectations: Expectations | Path | None = None,
    baseline: Baseline | Path | None = None,
    assurance: Proof | None = None,
) -> Result:
    """Run checks over one run.

    Args:
        source: an opened run, or the path of a bundle or trace.
        checks: ids or categories; None runs every installed check.
        secrets: what was planted, or a file that says so (its values are made with the run's canary tag where it has
            one); default what the bundle itself says was planted.
        expectations: what the server documents, or a file that says so; default the bundle's own file.
        baseline: the approved description, or a file that holds it; default the bundle's own.
        assurance: least proof for ``not_detected``; default ``declared`` for a run with a manifest, else ``inferred``.

    Raises:
        InputError: the evidence cannot be used.
        SpecError: an unknown check, or a broken plug-in.
    """
    if isinstance(source, str | Path):
        source = open_trace(Path(source))
    detectors = select(list(checks) if checks is not None else None)
    if isinstance(secrets, Path):
        secrets = load_secrets(secrets, tag=getattr(source, "tag", None))
    elif secrets is None:
        secrets = getattr(source, "secrets", None)
    expectations = expectations or getattr(source, "expect", None)
    if isinstance(expectations, Path):
        expectations = load_expectations(expectations)
    baseline = baseline or getattr(source, "baseline", None)
    if isinstance(baseline, Path):
        baseline = load_baseline(baseline)
    result = run_checks(
        source, detectors, secrets=secrets, expectations=expectations, baseline=baseline, assurance=assurance
    )
    result.generator = GENERATOR
    return result


def audit(
    sources: Sequence[TraceSource | str | Path],
    *,
    checks: Sequence[str] | None = None,
    secrets: Secrets | Path | None = None,
    expectations: Expectations | Path | None = None,
    baseline: Baseline | Path | None = None,
    assurance: Proof | None = None,
    name: str = "audit",
) -> Result:
    """Run checks over several runs of one server (open, denied, repeats) and join them into one result.

    Args:
        sources: the runs.
        checks: as for ``check``.
        secrets: as for ``check``; values are made for each run with its own tag.
        expectations: as for ``check``.
        baseline: as for ``check``.
        assurance: as for ``check``.
        name: what the audit is called in reports.
    """
    results = [
        check(
            source,
            checks=checks,
            secrets=secrets,
            expectations=expectations,
            baseline=baseline,
            assurance=assurance,
        )
        for source in sources
    ]
    joined = join_runs(results, name)
    joined.generator = GENERATOR
    return joined


def describe(sources: Sequence[TraceSource | str | Path]) -> Baseline:
    """Return the description of a server that one or several of its runs show, to be approved by a person.

    Args:
        sources: runs of the server, opened or as paths.

    Raises:
        InputError: the evidence cannot be used, or a run shows nothing that a description could hold.
    """
    opened = [open_trace(Path(source)) if isinstance(source, str | Path) else source for source in sources]
    return described(opened)
