"""A case read once and judged many times: whole, without some files, or with some of them changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mcpdetect.contract import Detector
from mcpdetect.data.baseline import load_baseline
from mcpdetect.data.inputs import load_expectations
from mcpdetect.engine.run import run_checks
from mcpdetect.ingest.adapter import Adapter
from mcpdetect.ingest.evidence import Evidence
from mcpdetect.ingest.manifest import Bundle, BundleEvidence, load_manifest
from mcpdetect.ingest.open import open_adapter
from mcpdetect.ingest.probes import ProbeWatch
from mcpdetect.model.event import Event
from mcpdetect.model.inputs import Expectations
from mcpdetect.model.observation import Observation
from mcpdetect.model.result import CheckResult

__all__ = ["Kept", "Recording"]


@dataclass(slots=True)
class Kept:
    """The events and the finished observation of one evidence file: an ``Adapter`` that can be read again."""

    observation: Observation
    recorded: list[Event] = field(default_factory=list)

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the recorded events; whoever recorded them chose the kinds."""
        yield from self.recorded


class _Listening:
    """An adapter whose events are kept while they stream."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.recorded: list[Event] = []
        self.wanted: frozenset[str] | None = None

    @property
    def observation(self) -> Observation:
        return self._adapter.observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        self.wanted = wanted
        for event in self._adapter.events(wanted):
            self.recorded.append(event)
            yield event


class Recording:
    """One bundle whose evidence is read once.

    Args:
        bundle: its folder.
        detectors: the checks that judge it, by id.

    Attributes:
        bundle: the bundle.
        whole: every check's result over all the evidence, by id.
        kept: the evidence files by name.

    Raises:
        InputError: the evidence cannot be used.
        ConfigError: its manifest is wrong.
    """

    def __init__(self, bundle: Path, detectors: Mapping[str, type[Detector]]) -> None:
        self.bundle: Bundle = load_manifest(bundle)
        self._detectors = dict(detectors)
        expect = self.bundle.expect
        self._expectations: Expectations | None = load_expectations(expect) if expect is not None else None
        approved = self.bundle.baseline
        self._baseline = load_baseline(approved) if approved is not None else None
        opened = {item.name: _Listening(_opened(item)) for item in self.bundle.evidence}
        probes = self.bundle.probes
        watch = ProbeWatch(probes, self.bundle.run.entry) if probes else None
        self.whole = self._judge(list(opened.values()), watch)
        # Once the probes have proved what they prove, their acts are evidence of nothing.
        gone = watch.taken if watch is not None else set()
        # MCP is not looked for in the calls of a run that has a transcript, so each file has its own kinds.
        self._wanted = {name: one.wanted for name, one in opened.items()}
        self.kept = {
            name: Kept(one.observation, [event for event in one.recorded if id(event) not in gone])
            for name, one in opened.items()
        }

    @property
    def channels(self) -> list[str]:
        """Return the channels that were recorded, sorted."""
        return sorted({item.channel for item in self.bundle.evidence})

    def judge(
        self, *, without: Collection[str] = (), changed: Mapping[str, Kept] | None = None
    ) -> dict[str, CheckResult]:
        """Return every check's result over the evidence that is left; without any, nothing can be judged.

        Args:
            without: names of the files that are taken away.
            changed: files that are replaced.
        """
        kept = {**self.kept, **(changed or {})}
        return self._judge([one for name, one in kept.items() if name not in without])

    def reread(self, item: BundleEvidence) -> Kept:
        """Read a changed evidence file, in the kinds of events that the checks want, to judge by it.

        Args:
            item: the file, under the name of the one it stands for, with what is declared about it.

        Raises:
            InputError: it cannot be used.
        """
        adapter = open_adapter(item.channel, item.format, item.path, item.name, item.declared)
        events = adapter.events(self._wanted[item.name])
        if self.bundle.probes:
            events = ProbeWatch(self.bundle.probes, self.bundle.run.entry).events(events, self._wanted[item.name])
        return Kept(adapter.observation, [event for event in events if event.kind != "probe"])

    def _judge(
        self, adapters: list[Adapter] | list[_Listening] | list[Kept], watch: ProbeWatch | None = None
    ) -> dict[str, CheckResult]:
        source = Evidence(self.bundle.run, list(adapters))
        source.probes = watch
        result = run_checks(
            source,
            self._detectors,
            secrets=self.bundle.secrets,
            expectations=self._expectations,
            baseline=self._baseline,
        )
        return {one.check: one for one in result.checks}


def _opened(item: BundleEvidence) -> Adapter:
    return open_adapter(item.channel, item.format, item.path, item.name, item.declared)
