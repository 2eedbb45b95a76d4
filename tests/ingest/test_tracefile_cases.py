"""Every recorded case, put on disk as a trace, is the same run."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_tree import ROOT
from trace_samples import Memory

from mcpdetect.ingest.open import open_trace
from mcpdetect.ingest.tracefile import TraceFile, write_trace
from mcpdetect.model.kinds import EVENT_TYPES

EVERY_KIND = frozenset(EVENT_TYPES)
CATEGORIES = sorted(path.name for path in (ROOT / "corpus").iterdir() if path.is_dir())


def bundles(category: str) -> Iterator[Path]:
    """Yield the bundles of a category."""
    for manifest in sorted((ROOT / "corpus" / category).rglob("manifest.json")):
        yield manifest.parent


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_recorded_case_survives_being_written_and_read(category: str, tmp_path: Path) -> None:
    seen = 0
    for bundle in bundles(category):
        source = open_trace(bundle)
        events = list(source.events(EVERY_KIND))
        run, observations = source.run, source.observations()
        path = tmp_path / "trace.jsonl.zst"
        assert write_trace(path, Memory(events, observations, run), form="jsonl") == len(events)
        trace = TraceFile(path)
        assert list(trace.events()) == events, bundle
        assert (trace.run, trace.observations()) == (run, observations), bundle
        streamed = io.BytesIO()
        write_trace(streamed, open_trace(bundle), form="json")
        kept = io.BytesIO()
        write_trace(kept, Memory(events, observations, run), form="json")
        assert streamed.getvalue() == kept.getvalue(), bundle
        seen += len(events)
    assert seen > 0
