"""What a recorded bundle says about itself: the values of ``manifest.json``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mcpdetect.model.place import STRICT
from mcpdetect.model.vocabulary import Channel

__all__ = [
    "MANIFEST_SCHEMA",
    "Manifest",
    "ManifestClock",
    "ManifestEvidence",
    "ManifestHost",
    "ManifestLoss",
    "ManifestProbe",
    "ManifestProgram",
    "ManifestRun",
    "ManifestSecret",
    "ManifestStep",
    "ManifestTruth",
]

MANIFEST_SCHEMA = "mcpdetect.manifest/0"
"""Name and version of the manifest format; the number grows when a reader of the old one would misread it."""


@dataclass(slots=True)
class ManifestStep:
    """One step of an MCP session.

    Attributes:
        name: the method, or ``shutdown``.
        status: how it ended: ``answered``, ``error``, ``bad-answer``, ``no-answer``, ``closed``, ``flooded``, ``done``.
        detail: what it was about, and why it went wrong where it did.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: str
    status: str
    detail: str = ""


@dataclass(slots=True)
class ManifestProgram:
    """A program file that ran.

    Attributes:
        path: where it lay.
        sha256, bytes: of the file; None where it could not be found again after the run.
        kind: ``elf``, ``script`` or ``other``.
        machine, bits, linkage: what its ELF header says: the processor's number (System V gABI, ``e_machine``), 32 or
            64, and ``dynamic``, ``static-pie``, ``static`` or ``other``.
        package: the distribution package that it belongs to.
        copied: its path in the bundle, where it was kept.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    path: str
    sha256: str | None = None
    bytes: int | None = None
    kind: str = "other"
    machine: int | None = None
    bits: int | None = None
    linkage: str | None = None
    package: str | None = None
    copied: str | None = None


@dataclass(slots=True)
class ManifestClock:
    """The machine's clocks, read at one moment of the recording: two readings tell whether the time of day was set.

    Attributes:
        at: ``opened``, when the watchers began, or ``closed``, when they ended.
        realtime_ns: epoch nanoseconds, the clock of every log of the bundle.
        monotonic_ns: nanoseconds of a clock that nobody can set.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    at: Literal["opened", "closed"]
    realtime_ns: int
    monotonic_ns: int


@dataclass(slots=True)
class ManifestRun:
    """The run that was recorded.

    Attributes:
        target: the command, argv.
        mode: ``open`` or ``denied``.
        denial: how the network was denied (``output-drop``, ``no-route``, ...), None when it was open.
        entry: absolute path of the program at which the target begins; execs before it are the launcher's.
        resolvers: addresses of the name servers the target was given.
        started_ns, ended_ns: epoch nanoseconds by the recorder's clock.
        exit: the target's exit status (128 + number for a signal), None when the recorder had to stop it.
        notes: anything a reader should know.
        session: what became of each step of the MCP session that the recorder held.
        programs: the program files that ran.
        clocks: the recorder's clocks at both ends of the recording.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    target: list[str]
    mode: Literal["open", "denied"]
    denial: str | None
    entry: str | None
    resolvers: list[str]
    started_ns: int
    ended_ns: int
    exit: int | None
    notes: list[str] = field(default_factory=list)
    session: list[ManifestStep] = field(default_factory=list)
    programs: list[ManifestProgram] = field(default_factory=list)
    clocks: list[ManifestClock] = field(default_factory=list)


@dataclass(slots=True)
class ManifestHost:
    """The machine the recording was made on; ``shell`` is how the cell was run (``netns``)."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    kernel: str
    machine: str
    shell: str
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ManifestLoss:
    """Something an evidence file is known to have lost; words as in ``mcpdetect.model.observation.Loss``."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    what: str
    detail: str
    count: int = 1


@dataclass(slots=True)
class ManifestEvidence:
    """One evidence file of the bundle.

    Attributes:
        path: its path inside the bundle.
        channel, format: what it is.
        tool: name and version of what wrote it.
        options: the tool's options.
        begin_ns, end_ns: when the tool was ready, and when it was told to stop.
        complete: the tool lived until then.
        scope: what part of the world it covers, such as an interface.
        losses: what it is known to have lost.
        sha256, bytes: of the file as it lies in the bundle.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    path: str
    channel: Channel
    format: str
    tool: str
    options: list[str]
    begin_ns: int
    end_ns: int
    complete: bool
    scope: str
    losses: list[ManifestLoss]
    sha256: str
    bytes: int


@dataclass(slots=True)
class ManifestSecret:
    """A planted secret: ``path`` or ``variable`` says where, ``value`` what (fake; it begins with ``CANARY-``).

    ``sha256`` is of the value, and stands alone where the value is not written down: of a bundle of our own recorder
    it is ``CANARY-<kind>-<tag>``, and the tag is the first 12 hexadecimal digits of the sha256 over seed, NUL and id.
    ``offset`` is where the value begins in what was planted, in bytes.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    kind: str
    sha256: str
    path: str | None = None
    variable: str | None = None
    value: str | None = None
    offset: int | None = None


@dataclass(slots=True)
class ManifestProbe:
    """A probe that the recorder ran in the same cell, under the same watchers.

    Attributes:
        phase: ``before`` the target began, or ``after`` it ended.
        nonce: 16 hexadecimal digits that were used for nothing else.
        channels: the channels that must show it if they were watching.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    phase: Literal["before", "after"]
    nonce: str
    channels: list[Channel]


@dataclass(slots=True)
class ManifestTruth:
    """What really happened, for those who label the case: no evidence, and no check reads it.

    Attributes:
        path: its path inside the bundle; the file may be left out of a copy.
        what: what it is: ``fake-internet``, the journal of all that the recorder's fake internet received.
        sha256, bytes: of the file.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    path: str
    what: str
    sha256: str
    bytes: int


@dataclass(slots=True)
class Manifest:
    """A bundle's ``manifest.json``.

    Attributes:
        schema: ``MANIFEST_SCHEMA``.
        id: the case, ``<category>/<control>/<variant>``; for a run of a real server, a name of the same shape.
        control, variant: which control was recorded, and in which form.
        seed: what the canaries were derived from.
        recorded: ISO 8601 date.
        run, host, evidence, secrets: see there.
        expect: path inside the bundle of an expectations file, where the case has one.
        baseline: path inside the bundle of an approved description, where the case has one.
        probes: the probes that were run, if any.
        truth: what really happened, beside the evidence.
        inputs: hash of all that the recording was made from, by which the recorder knows that it need not repeat it.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    schema: str
    id: str
    control: str
    variant: str
    seed: int
    recorded: str
    run: ManifestRun
    host: ManifestHost
    evidence: list[ManifestEvidence]
    secrets: list[ManifestSecret]
    expect: str | None = None
    baseline: str | None = None
    probes: list[ManifestProbe] = field(default_factory=list)
    truth: list[ManifestTruth] = field(default_factory=list)
    inputs: str | None = None
