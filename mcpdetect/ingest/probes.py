"""Probes in evidence: which channels they prove live, and their acts left out of what detectors see.

A probe is believed only where its nonce is declared (a manifest) and only as what it does:

* In system calls it is a process that the launcher started with the nonce among its arguments, and all that this
  process starts. The launcher is the first process of the log, as long as it has not become the target itself. So,
  where the log shows births, a target cannot pass off its own acts as a probe's even if it learns a nonce. Where a
  filter left births out, only the exact acts count.
* In packets, name logs, firewall and messages it is exactly the name, destination, prefix or id that its nonce gives,
  and nothing that could carry more.
* In the differences of files it is an empty file of its nonce: for the probe before the target one that only the first
  look saw, for the probe after it one that only the last look saw.

A channel is ``proved`` where it shows the probe before the target and the one after it. Where it shows only the first,
it died in between; where it must show one and does not, it was not watching: both are losses of everything it could
have shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from mcpdetect.ingest.keylog import KEYLOG_FORMAT
from mcpdetect.model.event import Event, Probe, ProcessExecFailed, ProcessStart
from mcpdetect.model.files import FileDifference
from mcpdetect.model.kinds import channel_of
from mcpdetect.model.mcp import McpMessage
from mcpdetect.model.net import DnsAnswer, DnsQuery, FirewallDrop, NetFlow
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.probe_acts import PHASES, Phase, ProbeActs, ProbeRun, named_probe
from mcpdetect.model.sockets import SocketConnect, SocketReceive, SocketSend
from mcpdetect.model.vocabulary import Channel

__all__ = ["PROBE_KINDS", "ProbeWatch", "discover"]

PROBE_KINDS = frozenset({"process.start", "dns.query", "net.flow", "firewall.drop", "mcp.message", "file.difference"})
"""Kinds that must be read for probes to be found, whatever else is wanted."""

_PLAIN = frozenset(
    {"file.open", "file.read", "file.change", "file.probe", "process.exit", "socket.open", "socket.state"}
)
"""Kinds that are a probe's only in a process of its own: the bulk of a trace, decided first."""

_MOST_PACKETS = 40
_MOST_BYTES = 256
"""Packets either way, and bytes out, of a probe's own conversation: one short payload, on a busy machine repeated."""


class ProbeWatch:
    """Finds the declared probes in the events of one run, and judges its observations by them.

    Args:
        declared: the probes that the recorder says it ran.
        entry: the program at which the target begins.
        only: the stream is the probes' acts and nothing else, to look at what became of them.

    Attributes:
        declared: the probes.
        taken: identities (``id``) of the events that were left out, for whoever keeps the rest.
        seen: evidence file and phase to the kinds of events by which it showed that probe.
    """

    def __init__(self, declared: Sequence[ProbeRun], entry: str | None = None, *, only: bool = False) -> None:
        self.declared = list(declared)
        self._acts = [ProbeActs(run.phase, run.nonce) for run in declared]
        self._names = {acts.name: acts for acts in self._acts}
        self._places = {(address, acts.port): acts for acts in self._acts for address in _addresses(acts)}
        self._ports = {acts.port: acts for acts in self._acts}
        self._texts = {acts.text: acts for acts in self._acts}
        self._messages = {f'"{acts.message_id}"': acts for acts in self._acts}
        self._marks = {(acts.mark, "deleted" if acts.phase == "before" else "created"): acts for acts in self._acts}
        self._entry = entry
        self._only = only
        self.taken: set[int] = set()
        self._first: str | None = None  # the first process of the log, or of a set of one file a process
        self._gone: set[str] = set()  # launchers that became the target, or might have
        self._began: set[str] = set()  # launchers that ran a probe
        self._born: set[str] = set()  # processes whose program the log shows, and what they start
        self._trees: dict[str, ProbeActs] = {}
        self._askers: dict[tuple[str | None, int | None], ProbeActs] = {}
        self.seen: dict[tuple[str, Phase], set[str]] = {}
        self._by_channel: dict[tuple[Channel, Phase], set[str]] = {}
        self._told: set[tuple[Channel, Phase]] = set()

    def events(self, events: Iterator[Event], wanted: frozenset[str] | None) -> Iterator[Event]:
        """Yield the wanted events that are no probe's, and a ``probe`` event where a channel first shows one."""
        trees, began = self._trees, self._began
        for event in events:
            if event.kind in _PLAIN and self._first is not None:
                process = event.process
                if process not in trees and process not in began:
                    if (wanted is None or event.kind in wanted) and not self._only:
                        yield event
                    continue
            acts = self._probe_of(event)
            if acts is not None:
                yield from self._note(event, acts, wanted)
            # ARP and ICMP belong to nobody: they tell what became of a probe as well.
            if acts is None and (self._is_launcher(event) or (self._only and event.kind != "net.packet")):
                self.taken.add(id(event))
                continue
            if acts is not None and not self._only:
                self.taken.add(id(event))
                continue
            if wanted is None or event.kind in wanted:
                yield event

    def _note(self, event: Event, acts: ProbeActs, wanted: frozenset[str] | None) -> Iterator[Event]:
        channel = channel_of(event)
        self.seen.setdefault((event.where.file, acts.phase), set()).add(event.kind)
        self._by_channel.setdefault((channel, acts.phase), set()).add(event.kind)
        if (channel, acts.phase) not in self._told:
            self._told.add((channel, acts.phase))
            if wanted is None or "probe" in wanted:
                yield Probe(event.where, event.t_ns, watched=channel, nonce=acts.nonce, phase=acts.phase)

    def _probe_of(self, event: Event) -> ProbeActs | None:
        channel = channel_of(event)
        if channel == "syscalls":
            return self._in_tree(event) or self._bare(event)
        if channel == "packets" and isinstance(event, NetFlow):
            return self._flow(event)
        if isinstance(event, DnsQuery | DnsAnswer):
            acts = self._names.get(event.name or "")
            if acts is not None and isinstance(event, DnsQuery) and channel == "packets":
                self._askers[event.client, event.client_port] = acts
            return acts
        if isinstance(event, FirewallDrop):
            acts = self._texts.get(event.prefix)
            if acts is None and event.address is not None:
                acts = self._places.get((event.address, event.port or 0))
            return acts
        if isinstance(event, McpMessage) and event.method == "ping":
            return self._messages.get(event.id or "")
        if isinstance(event, FileDifference) and event.type == "file" and event.size == 0:
            return self._marks.get((event.path, event.change))
        return None

    def _bare(self, event: Event) -> ProbeActs | None:
        """Return the probe that made an event of a process whose program the log does not show: by its exact act."""
        if event.process in self._born:
            return None
        if isinstance(event, DnsQuery | DnsAnswer):
            return self._names.get(event.name or "")
        if isinstance(event, SocketConnect | SocketSend | SocketReceive):
            acts = self._places.get((event.address or "", event.port or 0))
            if isinstance(event, SocketSend) and (event.tried or event.size or 0) <= _MOST_BYTES:
                return acts or next((one for one in self._acts if one.nonce.encode() in event.data), None)
            return None if isinstance(event, SocketSend) else acts
        return None

    def _flow(self, event: NetFlow) -> ProbeActs | None:
        """Return the probe whose conversation this is: to its own place, for its name, or on its port to everyone.

        A conversation whose first packets were lost stands the wrong way round.
        """
        if event.packets_out > _MOST_PACKETS or event.packets_in > _MOST_PACKETS:
            return None
        acts = self._places.get((event.address, event.port))
        answered = self._places.get((event.source, event.source_port)) if acts is None else None
        if answered is not None:
            return answered if event.bytes_in <= _MOST_BYTES else None
        if acts is None and event.port == 53 and event.transport == "udp":
            acts = self._askers.get((event.source, event.source_port))
        if acts is None and event.transport == "udp" and event.address.endswith(".255"):
            acts = self._ports.get(event.port)
        return acts if acts is not None and event.bytes_out <= _MOST_BYTES else None

    def _in_tree(self, event: Event) -> ProbeActs | None:
        process = event.process
        if process is None:
            return None
        first = self._first = self._first or process
        if isinstance(event, ProcessStart):
            # Where programs are left out of the log, births tell nothing either: no probe could be known by them.
            if event.how == "exec" or (event.how == "clone" and event.parent in self._born):
                self._born.add(process)
            if event.how == "clone" and event.parent in self._trees and process not in self._trees:
                self._trees[process] = self._trees[event.parent]
            elif event.how == "exec":
                self._exec(event, process, first)
        return self._trees.get(process)

    def _exec(self, event: ProcessStart, process: str, first: str) -> None:
        argv = event.argv or []
        acts = next((item for item in self._acts if _follow(argv, item.phase, item.nonce)), None)
        if process == first:
            # The launcher becomes something else: after a probe, or as the target, it launches no more.
            if process in self._began or (self._entry is not None and event.executable == self._entry):
                self._gone.add(process)
            return
        if acts is None and event.parent == first and first not in self._gone:
            acts = self._cut(event)
        if process in self._trees or acts is None:
            return
        # A log without births does not name parents; there the nonce alone, which no target knows, must do.
        if event.parent is None or (event.parent == first and first not in self._gone) or event.parent in self._trees:
            self._trees[process] = acts
            self._began.add(first)

    def _cut(self, event: ProcessStart) -> ProbeActs | None:
        """Return the probe whose arguments stand cut in the log, as ``strace -s`` cuts them.

        The launcher starts probes and the target, and nothing else; the target is known by its program. Which of two
        probes it was is told by what is left of the words, else by the time: the target stands between them.
        """
        if not event.argv_cut or self._entry is None or event.executable in (None, self._entry):
            return None
        argv = event.argv or []
        fitting = [one for one in self._acts if any(_begun(one, *words) for words in pairwise(argv))]
        started = set(self._trees.values())
        return next((one for one in fitting if one not in started), None)

    def _is_launcher(self, event: Event) -> bool:
        """Return whether an event is the launcher's own, once it has run a probe; births of its children stay."""
        if event.process is None or event.process not in self._began or event.process in self._gone:
            return False
        return channel_of(event) == "syscalls" and not isinstance(event, ProcessStart | ProcessExecFailed)

    def shown(self, item: Observation, phase: Phase, *, alone: bool) -> set[str]:
        """Return the kinds of events by which an observation showed a probe.

        Args:
            item: the observation.
            phase: which probe.
            alone: it is the only one of its channel, so all of the channel's events are its own, whatever files of a
                set they are in.
        """
        own = self.seen.get((item.source, phase), set())
        return own | self._by_channel.get((item.channel, phase), set()) if alone else own

    def judge(self, observations: list[Observation]) -> None:
        """Raise what the probes prove, and add the losses that they uncover. Call once, after the last event."""
        for channel in {item.channel for item in observations}:
            # A key log stands beside a capture and shows no probe.
            own = [
                item
                for item in observations
                if item.channel == channel and item.proof != "absent" and item.format != KEYLOG_FORMAT
            ]
            expected = [run for run in self.declared if channel in run.channels]
            for item in own:
                self._judge(item, [run.phase for run in expected], alone=len(own) == 1)

    def _judge(self, item: Observation, expected: list[Phase], *, alone: bool) -> None:
        shown = [self.shown(item, phase, alone=alone) for phase in PHASES]
        if all(shown) and len(shown) == len(PHASES):
            both = shown[0] & shown[1]
            for kind in item.watches:
                # One capture and one log show all of their kinds or none; system calls may be filtered one by one.
                if kind in both or item.channel != "syscalls":
                    item.watches[kind] = "proved"
            item.proof = "proved"
            return
        if not alone or (item.channel == "syscalls" and "process.start" not in item.watches):
            return  # which of several files had to show it is not known, or the filter left the probe's birth out
        if "before" in expected and not shown[0]:
            item.losses.append(Loss("probe-missed", "the probe before the target is not in it: it did not watch then"))
        elif "after" in expected and not shown[1]:
            item.losses.append(
                Loss("channel-died", "the probe after the target is not in it: it stopped watching before the end")
            )


def discover(events: Iterator[Event]) -> list[ProbeRun]:
    """Return the probes that can be recognised without knowing their nonces; only for runs without a target.

    Args:
        events: ``process.start``, ``dns.query`` and more, of one run.
    """
    found: dict[ProbeActs, set[Channel]] = {}
    for event in events:
        acts: ProbeActs | None = None
        if isinstance(event, ProcessStart):
            acts = _called(event.argv or [])
        elif isinstance(event, DnsQuery):
            acts = named_probe(event.name or "")
        if acts is not None:
            found.setdefault(acts, set()).add(channel_of(event))
    return [ProbeRun(acts.phase, acts.nonce, tuple(sorted(channels))) for acts, channels in found.items()]


def _called(argv: list[str]) -> ProbeActs | None:
    # ["sh", "probe.sh", "before", "0123456789abcdef"]
    for at, word in enumerate(argv[:-1]):
        if word in PHASES:
            acts = named_probe(f"{argv[at + 1]}.{word}.mcpdetect-probe.test")
            if acts is not None:
                return acts
    return None


def _follow(argv: list[str], phase: str, nonce: str) -> bool:
    return any(word == phase and argv[at + 1] == nonce for at, word in enumerate(argv[:-1]))


def _begun(acts: ProbeActs, phase: str, nonce: str) -> bool:
    """Return whether two words are what a cut left of a probe's phase and nonce."""
    return acts.phase.startswith(phase) and acts.nonce.startswith(nonce)


def _addresses(acts: ProbeActs) -> tuple[str, str]:
    return acts.address4, acts.address6
