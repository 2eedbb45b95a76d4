"""Executable files of a run as evidence: the channel ``binaries``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mcpdetect.errors import InputError, UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.elf.reading import examine
from mcpdetect.ingest.elf.source import open_seekable
from mcpdetect.ingest.opener import open_evidence
from mcpdetect.model.binary import BinaryImage
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.text import text_of
from mcpdetect.model.vocabulary import Proof

__all__ = ["BinaryFiles"]

_KIND = "binary.image"


class BinaryFiles:
    """Programs that the run executed, kept with its evidence: one ``binary.image`` each.

    Where a manifest declares one file with an absolute path as its scope, that is the path it had in the run.

    Args:
        paths: the file, or several; compressed or not.
        names: their names in every place; the paths otherwise.
        declared: what a manifest says about them.

    Raises:
        InputError: one cannot be opened, is empty, or is no ELF file.
    """

    def __init__(
        self,
        paths: Path | Sequence[Path],
        names: str | Sequence[str] | None = None,
        declared: Declared | None = None,
    ) -> None:
        files = [paths] if isinstance(paths, Path) else list(paths)
        given = [names] if isinstance(names, str) else list(names) if names is not None else [str(one) for one in files]
        if not files or len(files) != len(given):
            raise InputError("every program needs a file and a name", value=f"{len(files)} files, {len(given)} names")
        self._files = list(zip(files, given, strict=True))
        for path, name in self._files:
            with open_evidence(path, name) as stream:
                magic = stream.read_exactly(4)
            if magic != b"\x7fELF":
                raise UnknownFormat(
                    "is no ELF file",
                    file=name,
                    place="offset 0",
                    value=magic.hex(" "),
                    hint="leave it out: only programs in machine code are looked at",
                )
        scope = declared.scope if declared is not None else None
        self._run_path = text_of(scope.encode()) if scope is not None and scope.startswith("/") else None
        proof: Proof = "declared" if declared is not None else "inferred"
        self._observation = Observation(
            "binaries",
            given[0] if len(given) == 1 else f"{given[0]} and {len(given) - 1} more",
            "elf",
            declared.tool if declared is not None else None,
            list(declared.options or []) if declared is not None else [],
            proof,
            {_KIND: proof},
            clock="none",
            complete=declared.complete if declared is not None else False,
            losses=list(declared.losses) if declared is not None else [],
            scope=scope,
        )
        if declared is not None:
            self._observation.begin_ns, self._observation.end_ns = declared.begin_ns, declared.end_ns

    @property
    def observation(self) -> Observation:
        """What the files can show; complete after ``events`` was read to its end."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield one ``binary.image`` a file, ``unparsed`` for one whose header cannot be read."""
        counts = {"files": 0, "events": 0, "unparsed": 0}
        self._observation.counts = counts
        for path, name in self._files:
            counts["files"] += 1
            where = Where(name, 0, unit="offset")
            try:
                with open_seekable(path, name) as (stream, shown):
                    found, size, digest = examine(stream, shown)
            except InputError as error:
                counts["unparsed"] += 1
                self._lose("unparsed", error.problem, where)
                if wanted is None or "unparsed" in wanted:
                    yield Unparsed(where, None, seen_in="binaries", reason=error.problem, touches=[_KIND])
                continue
            for problem in found.problems:
                self._lose("elf-damaged", problem, where)
            counts["events"] += 1
            if wanted is None or _KIND in wanted:
                yield BinaryImage(where, None, path=self._run_path, size=size, sha256=digest, elf=found)

    def _lose(self, what: str, detail: str, where: Where) -> None:
        for known in self._observation.losses:
            if (known.what, known.detail) == (what, detail):
                known.count += 1
                return
        self._observation.losses.append(Loss(what, detail, 1, where, [_KIND]))
