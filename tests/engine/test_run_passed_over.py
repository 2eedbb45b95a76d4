"""Events that nobody looks at are not made, and nothing else changes by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from mcpdetect import open_evidence_files
from mcpdetect.contract import AnyOf, Context, Detector, Fact, Need, Spec
from mcpdetect.correlate.explain import Explanations
from mcpdetect.engine.discovery import detectors
from mcpdetect.engine.run import run_checks
from mcpdetect.model.event import Event, FileProbe
from mcpdetect.model.observation import Observation
from mcpdetect.model.trace import Run, TraceSource
from mcpdetect.model.wanted import Wanted

LOG = """\
7 1796037399.000001 execve("/bin/a", ["a"], 0x7ffd /* 3 vars */) = 0 <0.000200>
7 1796037399.000002 newfstatat(AT_FDCWD</srv>, "/lib/a.js", {st_mode=S_IFREG|0644, st_size=7, ...}, 0) = 0
7 1796037399.000003 newfstatat(AT_FDCWD</srv>, "/srv/.env", 0x7ffd, 0) = -1 ENOENT (No such file or directory)
7 1796037399.000004 access("/lib/b\\\\.js", R_OK) = -1 ENOENT (No such file or directory)
7 1796037399.000005 access("/home/dev/.env", R_OK) = 0
7 1796037399.000006 openat(AT_FDCWD</srv>, "/lib", O_RDONLY|O_DIRECTORY) = 3</lib>
7 1796037399.000007 getdents64(3</lib>, 0x55d5 /* 5 entries */, 32768) = 144
7 1796037399.000008 openat(AT_FDCWD</srv>, "/home/dev/.env", O_RDONLY) = 4</home/dev/.env>
7 1796037399.000009 read(4</home/dev/.env>, "KEY=1\\n", 4096) = 6
7 1796037399.000010 +++ exited with 0 +++
"""


class _Kept:
    """A run that keeps what came out of it, with or without the texts of what it is asked."""

    def __init__(self, source: TraceSource, *, plain: bool) -> None:
        self._source, self._plain = source, plain
        self.probes: list[str | None] = []

    @property
    def run(self) -> Run:
        return self._source.run

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        assert wanted is not None
        for event in self._source.events(frozenset([*wanted]) if self._plain else wanted):
            if isinstance(event, FileProbe):
                self.probes.append(event.path)
            yield event

    def observations(self) -> list[Observation]:
        return self._source.observations()


def test_checks_say_the_same_with_and_without_the_events_that_nobody_looks_at(tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    path.write_text(LOG)
    some, every = (_Kept(open_evidence_files(strace=[path]), plain=plain) for plain in (False, True))
    assert run_checks(some, detectors()) == run_checks(every, detectors())
    assert some.probes == ["/srv/.env", "/home/dev/.env"]
    assert every.probes == ["/lib/a.js", "/srv/.env", "/lib/b\\\\.js", "/home/dev/.env", "/lib"]
    counted = [source.observations()[0].counts["events"] for source in (some, every)]
    assert counted[0] == counted[1] > len(every.probes)


class _All(Fact):
    """Every look at a file."""

    kinds: ClassVar[tuple[str, ...]] = ("file.probe",)


def _detector(*facts: type[Fact], kinds: tuple[str, ...] = ("file.open",)) -> type[Detector]:
    class Asks(Detector):
        """Asks."""

        spec = Spec(
            id="test.asks",
            version=1,
            claim="nothing",
            kinds=kinds,
            needs=(AnyOf("to see", Need("syscalls", ("file.open",))),),
            blind_to=("all",),
            facts=facts,
        )

        def __init__(self, context: Context) -> None:
            super().__init__(context)

    return Asks


class _Asked:
    """A run of nothing that keeps what it was asked for."""

    run = Run()
    wanted: frozenset[str] | None = None

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        self.wanted = wanted
        return iter(())

    def observations(self) -> list[Observation]:
        return []


def _texts(*kinds: type[Detector]) -> dict[str, frozenset[str]]:
    source = _Asked()
    run_checks(source, {f"test.asks{number}": detector for number, detector in enumerate(kinds)})
    assert isinstance(source.wanted, Wanted)
    return dict(source.wanted.texts)


def test_a_kind_is_thinned_out_only_where_nobody_asks_for_all_of_it() -> None:
    assert _texts(_detector(Explanations)) == {"file.probe": frozenset({"/.env"})}
    assert _texts(_detector(Explanations), _detector()) == {"file.probe": frozenset({"/.env"})}
    assert _texts(_detector(Explanations, _All)) == {}
    assert _texts(_detector(Explanations), _detector(kinds=("file.probe",))) == {}
