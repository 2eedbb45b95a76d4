"""Reducing a reviewed trace to the smallest evidence that still shows the same: delta debugging over evidence files.

Whole files go first, then whole processes, then ever smaller runs of lines and packets. What is taken out must leave
the check's verdict, its findings with their levels, and, without findings, the limits that hide as they were.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mcpdetect.contract import Detector
from mcpdetect.errors import ConfigError, InputError
from mcpdetect.model.result import CheckResult
from mcpdetect.score.cuts import Content, content_of, drop_process, written
from mcpdetect.score.recording import Kept, Recording

__all__ = ["MAX_TRIES", "Reduced", "reduce"]

MAX_TRIES = 2000
"""Most times the check is asked; what is left then is kept."""

# strace.log.zst:41, strace.log.zst:41+57, capture.pcap#3
_PLACE = re.compile(r"(?P<file>[^:#@]++)[:#](?P<at>[0-9]{1,12})(?:\+(?P<end>[0-9]{1,12}))?")


@dataclass(slots=True)
class Reduced:
    """What is left of a bundle.

    Attributes:
        recording: the whole bundle.
        result: what the check says about what is left.
        contents: file name -> what is left of it; a file that could be left out has no entry.
        whole: names of files that are kept as they are, because their form is not understood.
        before, after: lines and packets.
        tries: how often the check was asked.
    """

    recording: Recording
    result: CheckResult
    contents: dict[str, Content]
    whole: list[str]
    before: int
    after: int
    tries: int


class _Search:
    """The search, and what it holds so far."""

    def __init__(
        self, bundle: Path, detectors: Mapping[str, type[Detector]], check: str, folder: Path, keep: Iterable[str]
    ) -> None:
        self.recording = Recording(bundle, detectors)
        self.check = check
        self.wanted = _shape(self.recording.whole[check])
        self.folder = folder
        self.tries = 0
        found = {item.name: content_of(item) for item in self.recording.bundle.evidence}
        self.contents = {name: content for name, content in found.items() if content is not None}
        self.whole = [name for name, content in found.items() if content is None]
        self.read = {name: self.recording.kept[name] for name in found}
        self.gone: set[str] = set()
        self.held = {name: _held(name, content, keep) for name, content in self.contents.items()}
        _require_places(keep, self.contents)

    def holds(self, changed: Mapping[str, Kept], gone: set[str]) -> bool:
        """Return whether the check still says the same."""
        if self.tries >= MAX_TRIES or gone >= self.recording.kept.keys():
            return False
        self.tries += 1
        try:
            said = self.recording.judge(without=gone, changed={**self.read, **changed})[self.check]
        except InputError:  # what is left is no evidence of one run any more
            return False
        return _shape(said) == self.wanted

    def leave_out(self, name: str) -> bool:
        """Leave a whole file out, if that changes nothing."""
        if self.held.get(name) or not self.holds({}, self.gone | {name}):
            return False
        self.gone.add(name)
        self.contents.pop(name, None)
        if name in self.whole:
            self.whole.remove(name)
        return True

    def take(self, name: str, content: Content) -> bool:
        """Replace a file's content, if that changes nothing."""
        if not content.parts or not self.held[name] <= set(map(id, content.parts)):
            return False
        try:
            kept = self.recording.reread(written(content, self.folder))
        except InputError:
            return False
        if not self.holds({name: kept}, self.gone):
            return False
        self.contents[name], self.read[name] = content, kept
        return True


def _held(name: str, content: Content, keep: Iterable[str]) -> set[int]:
    """Return the identities of the parts that a person wants to keep."""
    found = set()
    for place in keep:
        match = _PLACE.fullmatch(place)
        if match and match["file"] == name:
            for number in (match["at"], match["end"]):
                if number and 0 < int(number) <= len(content.parts):
                    found.add(id(content.parts[int(number) - 1]))
    return found


def _require_places(keep: Iterable[str], contents: Mapping[str, Content]) -> None:
    for place in keep:
        match = _PLACE.fullmatch(place)
        content = contents.get(match["file"]) if match else None
        if match is None or content is None or not 0 < int(match["at"]) <= len(content.parts):
            raise ConfigError(
                "is no place in this evidence", value=place, hint="write it as a report does: strace.log.zst:41"
            )


def _shape(result: CheckResult) -> tuple[object, ...]:
    findings = sorted((finding.key, finding.level) for finding in result.findings)
    hiding = sorted({limit.what for limit in result.limits if limit.hides}) if not findings else []
    return result.verdict, findings, hiding


def reduce(
    bundle: Path,
    detectors: Mapping[str, type[Detector]],
    check: str,
    *,
    keep: Collection[str] = (),
    whole: bool = False,
    each: Callable[[int], object] | None = None,
) -> Reduced:
    """Return the smallest part of a bundle's evidence that one check says the same about.

    A check that is ``not_detected`` says so about next to nothing as well: such evidence is kept whole.

    Args:
        bundle: its folder.
        detectors: the check alone, or more.
        check: the check.
        keep: places of lines and packets that must stay, as reports write them: what makes a wrong verdict wrong.
        whole: take nothing out.
        each: told the number of tries after every file.

    Raises:
        InputError: the evidence cannot be used.
        ConfigError: its manifest is wrong, or a place to keep is none.
    """
    with tempfile.TemporaryDirectory(prefix="mcpdetect-") as folder:
        search = _Search(bundle, {check: detectors[check]}, check, Path(folder), keep)
        before = sum(len(content.parts) for content in search.contents.values())
        if search.wanted[0] != "not_detected" and not whole:
            for name in list(search.read):
                search.leave_out(name)
            for name in list(search.contents):
                _processes(search, name)
                _parts(search, name)
                if each is not None:
                    each(search.tries)
        result = search.recording.judge(without=search.gone, changed=search.read)[check]
        after = sum(len(content.parts) for content in search.contents.values())
        return Reduced(search.recording, result, search.contents, search.whole, before, after, search.tries)


def _processes(search: _Search, name: str) -> None:
    content = search.contents[name]
    if content.item.channel != "syscalls":
        return
    for pid in content.processes:
        search.take(name, drop_process(search.contents[name], pid))


def _parts(search: _Search, name: str) -> None:
    """Drop runs of parts, of half the length, a quarter, and so on down to one, as long as any of them goes."""
    size = max(1, len(search.contents[name].parts) // 2)
    while True:
        dropped = False
        at = 0
        while at < len(search.contents[name].parts):
            content = search.contents[name]
            if search.take(name, replace(content, parts=content.parts[:at] + content.parts[at + size :])):
                dropped = True
            else:
                at += size
        if size == 1 and not dropped:
            return
        size = max(1, size // 2) if not dropped or size > 1 else 1
