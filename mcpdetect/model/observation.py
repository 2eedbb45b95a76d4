"""What one evidence file could show: tool and options, window, proof, losses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from mcpdetect.model.place import STRICT, Where
from mcpdetect.model.vocabulary import Channel, Clock, Proof

__all__ = ["Loss", "Observation"]


@dataclass(slots=True)
class Loss:
    """Something an evidence file lost or cannot show.

    Attributes:
        what: a stable word: ``unparsed``, ``string-cut``, ``unfinished``, ``orphan-resumed``, ``unknown-call``,
            ``file-truncated``, ``no-exit``, ``attached``, ``shared-stream``, ``snaplen``, ``dropped``, ``fragment``,
            ``link-type``, ``name-hidden``, ``untraced-process``, ``io_uring``, ``no-clock``,
            ``line-cut``, ``overflow``, ...
        detail: the sentence shown to people.
        count: how often.
        where: the first place.
        touches: event kinds whose absence can no longer be claimed because of it; empty means every kind of
            the channel. A loss that hides nothing a check looks for is only a note.
        note: the loss hides no event: it stands beside verdicts and never lowers one.
        process: set when the loss concerns one process only.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    what: str
    detail: str
    count: int = 1
    where: Where | None = None
    touches: list[str] = field(default_factory=list)
    note: bool = False
    process: str | None = None


@dataclass(slots=True)
class Observation:
    """What one evidence file could show in one trace. Complete once its events have been read to the end.

    Attributes:
        channel: the channel it belongs to (a strace log may also serve ``dns`` questions out of buffers; that
            does not make it a dns observation).
        source: the file's name as in ``Where.file``.
        format: ``strace``, ``pcap``, ``pcapng``, ``dnsmasq``, ``mcp-ndjson``, ...
        tool: name and version of the recorder where known.
        options: its options as declared by a manifest, or inferred from the content.
        proof: why we believe that it was watching.
        watches: event kind -> proof that this file would show it. A kind that is missing was not watched.
        clock: what its times count from.
        begin_ns, end_ns: the window it covers, by manifest or by first and last time seen.
        complete: it ran until the target ended (an exit line, a closing record, a manifest's word).
        counts: what was read, such as ``lines``, ``packets``, ``events``, ``unparsed``.
        losses: see ``Loss``.
        scope: what part of the world it covers: interface, process tree, resolver address.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    channel: Channel
    source: str
    format: str
    tool: str | None = None
    options: list[str] = field(default_factory=list)
    proof: Proof = "inferred"
    watches: dict[str, Proof] = field(default_factory=dict)
    clock: Clock = "epoch"
    begin_ns: int | None = None
    end_ns: int | None = None
    complete: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    scope: str | None = None
