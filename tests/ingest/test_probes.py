"""Probes in evidence: what they prove, what is left out as theirs, and what a target cannot pass off as one."""

from collections.abc import Iterator
from typing import Literal

import pytest
from probe_log import AFTER, BEFORE, RUNS, Log, lines, passed

from mcpdetect.ingest.probes import ProbeWatch, discover
from mcpdetect.model.event import Event, Probe, ProcessExit
from mcpdetect.model.files import FileDifference
from mcpdetect.model.mcp import McpMessage
from mcpdetect.model.net import DnsAnswer, DnsQuery, FirewallDrop, NetFlow, NetPacket
from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.probe_acts import ProbeRun, named_probe
from mcpdetect.model.sockets import SocketConnect, SocketSend
from mcpdetect.model.vocabulary import Channel


def test_what_a_probe_does_follows_from_its_nonce() -> None:
    assert (BEFORE.name, BEFORE.address4, BEFORE.address6, BEFORE.port, BEFORE.text, BEFORE.message_id) == (
        "0123456789abcdef.before.mcpdetect-probe.test",
        "198.19.35.69",
        "2001:db8::123:4567:89ab:cdef",
        46505,
        "mcpdetect-probe before 0123456789abcdef",
        "mcpdetect-probe-c4ccf30f705bf399",
    )
    assert named_probe(BEFORE.name) == BEFORE
    assert named_probe(f"x.{BEFORE.name}") is None
    assert named_probe("0123456789ABCDEF.before.mcpdetect-probe.test") is None


def test_a_probe_and_its_children_are_left_out_and_told_once_a_phase() -> None:
    log = Log()
    events = [
        log.execed("1", None, "/run/probe", "around", BEFORE.nonce),
        log.forked("2", "1"),
        log.execed("2", "1", "/run/probe", "before", BEFORE.nonce),
        log.opened("2", "/tmp/x"),
        log.forked("3", "2"),
        log.opened("3", "/tmp/y"),
        log.opened("1", "/launcher"),
        log.forked("4", "1"),
        log.execed("4", "1", "/bin/target"),
        log.opened("4", "/etc/hosts"),
        log.execed("5", "1", "/bin/sh", "probe.sh", "after", AFTER.nonce),
        log.opened("5", "/tmp/z"),
    ]
    told = passed(events)
    assert [(event.kind, event.where.at) for event in told] == [
        ("process.start", 1),
        ("process.start", 2),
        ("probe", 3),
        ("process.start", 8),
        ("process.start", 9),
        ("file.open", 10),
        ("probe", 11),
    ]
    assert [(event.watched, event.phase, event.nonce) for event in told if isinstance(event, Probe)] == [
        ("syscalls", "before", BEFORE.nonce),
        ("syscalls", "after", AFTER.nonce),
    ]
    assert [event.where.at for event in passed(events, only=True) if event.kind != "probe"] == [3, 4, 5, 6, 11, 12]


def test_a_target_that_learned_a_nonce_cannot_pass_as_a_probe() -> None:
    log = Log()
    events = [
        log.execed("1", None, "/bin/sh", "-c", "..."),
        log.execed("2", "1", "/bin/sh", "probe.sh", "before", BEFORE.nonce),
        log.forked("3", "1"),
        log.execed("3", "1", "/bin/target"),
        log.execed("4", "3", "/bin/sh", "probe.sh", "after", AFTER.nonce),
        log.opened("4", "/home/dev/.ssh/id_ed25519"),
    ]
    assert lines(event for event in passed(events) if event.kind != "probe") == [1, 3, 4, 5, 6]


def test_a_launcher_that_became_the_target_launches_no_probe() -> None:
    log = Log()
    events = [
        log.execed("1", None, "/bin/sh", "-c", "..."),
        log.execed("1", None, "/bin/target"),
        log.execed("2", "1", "/bin/sh", "probe.sh", "before", BEFORE.nonce),
        log.opened("2", "/home/dev/.ssh/id_ed25519"),
    ]
    assert lines(passed(events)) == [1, 2, 3, 4]
    # Without a known entry, whatever the launcher becomes after a probe may be the target.
    log = Log()
    events = [
        log.execed("1", None, "/bin/sh", "-c", "..."),
        log.execed("2", "1", "/bin/sh", "probe.sh", "before", BEFORE.nonce),
        log.execed("1", None, "/bin/other"),
        log.execed("3", "1", "/bin/sh", "probe.sh", "after", AFTER.nonce),
        log.opened("3", "/home/dev/.ssh/id_ed25519"),
    ]
    assert lines(event for event in passed(events, None) if event.kind != "probe") == [1, 3, 4, 5]


def test_a_log_without_births_goes_by_the_nonce() -> None:
    log = Log()
    events = [
        log.execed("1", None, "/run/probe", "around"),
        log.execed("2", None, "/run/probe", "before", BEFORE.nonce),
        log.opened("2", "/x"),
        log.execed("3", None, "/bin/sh", "-c", BEFORE.nonce, "before"),
        log.opened("3", "/y"),
    ]
    assert lines(event for event in passed(events) if event.kind != "probe") == [1, 4, 5]


def test_a_set_of_one_file_a_process_is_one_log() -> None:
    log = Log()
    events: list[Event] = [
        log.execed("1", None, "/bin/sh", "-c", "..."),
        log.execed("2", "1", "/bin/sh", "probe.sh", "before", BEFORE.nonce),
        log.execed("3", "1", "/bin/sh", "probe.sh", "after", AFTER.nonce),
    ]
    for event in events:
        event.where = Where(f"t.{event.process}", 1)
    watch = ProbeWatch(RUNS)
    assert [event.process for event in watch.events(iter(events), frozenset({"process.start"}))] == ["1"]
    item = Observation("syscalls", "t", "strace", proof="declared", watches={"process.start": "declared"})
    watch.judge([item])
    assert (item.proof, item.watches, item.losses) == ("proved", {"process.start": "proved"}, [])


def test_where_births_are_filtered_out_exact_acts_are_known_and_no_others() -> None:
    log = Log()

    def sent(process: str, address: str, port: int, data: bytes = b"hi") -> SocketSend:
        at = log.at()
        return SocketSend(
            at, at.at, "sendto", 2, process=process, address=address, port=port, data=data, size=2, tried=len(data)
        )

    def connected(process: str, address: str, port: int) -> SocketConnect:
        at = log.at()
        return SocketConnect(at, at.at, "connect", 0, process=process, address=address, port=port)

    events = [
        connected("7", BEFORE.address4, BEFORE.port),
        connected("7", BEFORE.address4, BEFORE.port + 1),
        sent("7", "10.0.0.1", 53, b"\x10" + BEFORE.nonce.encode()),
        sent("7", "10.0.0.1", 53, b"something else"),
        sent("7", BEFORE.address4, BEFORE.port, b"x" * 257),
        sent("7", BEFORE.address6, BEFORE.port),
        DnsQuery(log.at(), 7, seen_in="syscalls", name=BEFORE.name, process="7"),
        log.execed("8", "7", "/bin/target"),
        connected("8", BEFORE.address4, BEFORE.port),
    ]
    assert lines(event for event in passed(events) if event.kind != "probe") == [2, 4, 5, 8, 9]


def packet(number: int) -> Where:
    return Where("c.pcap", number, unit="packet")


def flow(
    number: int,
    address: str,
    port: int,
    transport: Literal["tcp", "udp"] = "tcp",
    *,
    source_port: int = 40000,
    packets_out: int = 4,
    bytes_out: int = 39,
) -> NetFlow:
    return NetFlow(
        packet(number),
        number,
        transport=transport,
        source="10.0.0.2",
        source_port=source_port,
        address=address,
        port=port,
        packets_out=packets_out,
        packets_in=3,
        bytes_out=bytes_out,
    )


def turned(event: NetFlow) -> NetFlow:
    """Return a conversation whose first packets were lost, so that its answer begins it."""
    event.source, event.address = event.address, event.source
    event.source_port, event.port = event.port, event.source_port
    event.bytes_in, event.bytes_out = event.bytes_out, 10_000
    return event


def test_only_the_probes_own_conversations_are_left_out_of_packets() -> None:
    query = DnsQuery(
        packet(1), 1, seen_in="packets", name=BEFORE.name, client="10.0.0.2", client_port=5000, server="10.0.0.1"
    )
    events = [
        query,
        DnsAnswer(packet(2), 2, seen_in="packets", name=BEFORE.name),
        DnsQuery(packet(3), 3, seen_in="packets", name=f"secret.{BEFORE.name}"),
        flow(4, BEFORE.address4, BEFORE.port),
        flow(5, BEFORE.address6, BEFORE.port),
        flow(6, BEFORE.address4, BEFORE.port, bytes_out=257),
        flow(7, BEFORE.address4, BEFORE.port, packets_out=41),
        flow(8, BEFORE.address4, BEFORE.port + 1),
        flow(9, "10.0.0.1", 53, "udp", source_port=5000),
        flow(10, "10.0.0.1", 53, "udp", source_port=5001),
        flow(11, "10.0.0.1", 53, "tcp", source_port=5000),
        flow(12, "10.0.0.255", BEFORE.port, "udp"),
        flow(13, "10.0.0.255", AFTER.port + 1, "udp"),
        NetPacket(packet(14), 14, protocol="arp"),
        turned(flow(15, BEFORE.address4, BEFORE.port)),
        turned(flow(16, BEFORE.address4, BEFORE.port, bytes_out=257)),
        turned(flow(17, BEFORE.address4, BEFORE.port + 1)),
    ]
    told = passed(events)
    assert lines(event for event in told if event.kind != "probe") == [3, 6, 7, 8, 10, 11, 13, 14, 16, 17]
    assert [(event.watched, event.where.at) for event in told if isinstance(event, Probe)] == [("packets", 1)]


def test_firewall_and_message_probes_are_known_by_prefix_and_id() -> None:
    def dropped(line: int, prefix: str) -> FirewallDrop:
        return FirewallDrop(Where("nft.txt", line), None, action="drop", prefix=prefix)

    def message(number: int, method: str | None, identity: str, form: str = "request") -> McpMessage:
        where = Where("mcp.jsonl", number, unit="message")
        return McpMessage(where, number, form=form, method=method, id=identity)  # type: ignore[arg-type]

    events: list[Event] = [
        dropped(1, BEFORE.text),
        dropped(2, f"{BEFORE.text} and more"),
        message(3, "ping", f'"{AFTER.message_id}"'),
        message(4, "ping", f'"{AFTER.message_id}"', "response"),
        message(5, "tools/call", f'"{AFTER.message_id}"'),
        message(6, "ping", "7"),
    ]
    told = passed(events)
    assert lines(event for event in told if event.kind != "probe") == [2, 5, 6]
    assert [(event.watched, event.phase) for event in told if isinstance(event, Probe)] == [
        ("firewall", "before"),
        ("mcp", "after"),
    ]


def judged(channel: Channel, *seen: tuple[str, str], expected: tuple[Channel, ...] | None = None) -> Observation:
    """Return an observation after probes that showed themselves as ``seen`` (phase, kind)."""
    runs = [ProbeRun(acts.phase, acts.nonce, (channel,) if expected is None else expected) for acts in (BEFORE, AFTER)]
    watch = ProbeWatch(runs)
    item = Observation(
        channel, "e", "x", proof="declared", watches=dict.fromkeys(("dns.query", "net.flow"), "declared")
    )
    item.watches["process.start"] = "declared"
    for phase, kind in seen:
        watch.seen.setdefault(("e", phase), set()).add(kind)  # type: ignore[arg-type]
    watch.judge([item])
    return item


def test_both_phases_prove_a_channel_kind_by_kind_where_calls_are_filtered() -> None:
    both = (("before", "dns.query"), ("after", "dns.query"))
    calls, wire = judged("syscalls", *both), judged("packets", *both)
    assert (calls.proof, calls.watches) == (
        "proved",
        {"dns.query": "proved", "net.flow": "declared", "process.start": "declared"},
    )
    assert (wire.proof, set(wire.watches.values()), wire.losses) == ("proved", {"proved"}, [])


@pytest.mark.parametrize(
    ("seen", "what"),
    [((("before", "net.flow"),), "channel-died"), ((("after", "net.flow"),), "probe-missed"), ((), "probe-missed")],
)
def test_a_probe_that_is_missing_is_a_loss_of_everything(seen: tuple[tuple[str, str], ...], what: str) -> None:
    item = judged("packets", *seen)
    assert item.proof == "declared"
    assert [(loss.what, loss.touches, loss.note) for loss in item.losses] == [(what, [], False)]


def test_where_no_probe_could_show_nothing_is_said() -> None:
    assert judged("packets", expected=("syscalls",)).losses == []


def test_marks_of_both_probes_prove_the_looks_at_the_files_and_nothing_else_passes_for_one() -> None:
    runs = [ProbeRun("before", BEFORE.nonce, ("files",)), ProbeRun("after", AFTER.nonce, ("files",))]
    assert BEFORE.mark == "/tmp/mcpdetect-probe-0123456789abcdef"
    differs = [
        FileDifference(Where("files.json", 2), None, path=AFTER.mark, change="created", mode="0600"),
        FileDifference(Where("files.json", 3), None, path=BEFORE.mark, change="deleted", mode="0600"),
    ]
    others = [
        FileDifference(Where("files.json", 4), None, path=BEFORE.mark, change="created"),
        FileDifference(Where("files.json", 5), None, path=AFTER.mark, change="deleted"),
        FileDifference(Where("files.json", 6), None, path=AFTER.mark, change="created", size=1),
        FileDifference(Where("files.json", 7), None, path=AFTER.mark, change="created", type="link", target="/etc"),
        FileDifference(Where("files.json", 8), None, path=f"/home{AFTER.mark}", change="created"),
    ]

    def judged(events: list[Event]) -> tuple[list[Event], Observation]:
        watch = ProbeWatch(runs)
        kept = list(watch.events(iter(events), frozenset({"file.difference"})))
        item = Observation(
            "files", "files.json", "files-diff", proof="declared", watches={"file.difference": "declared"}
        )
        watch.judge([item])
        return kept, item

    kept, item = judged([*differs, *others])
    assert kept == others
    assert (item.proof, item.watches, item.losses) == ("proved", {"file.difference": "proved"}, [])
    for seen, loss in (
        ([], "probe-missed"),
        (others, "probe-missed"),
        (differs[:1], "probe-missed"),
        (differs[1:], "channel-died"),
    ):
        kept, item = judged(list(seen))
        assert (item.proof, [one.what for one in item.losses]) == ("declared", [loss])


def test_of_several_files_nobody_knows_which_had_to_show_the_probe() -> None:
    two = [Observation("packets", name, "pcap", proof="declared") for name in ("a", "b")]
    ProbeWatch([ProbeRun("before", BEFORE.nonce, ("packets",))]).judge(two)
    assert [item.losses for item in two] == [[], []]


def test_a_filter_without_births_says_nothing_about_calls() -> None:
    item = Observation("syscalls", "e", "strace", watches={"file.open": "declared"})
    ProbeWatch(RUNS).judge([item])
    assert item.losses == []


def test_only_wanted_events_come_through() -> None:
    log = Log()
    events = [
        log.execed("1", None, "/bin/sh"),
        log.execed("2", "1", "/bin/sh", "probe.sh", "before", BEFORE.nonce),
        log.opened("1", "/launcher"),
        ProcessExit(log.at(), 4, 0, process="3"),
    ]
    watch = ProbeWatch(RUNS)
    assert lines(watch.events(iter(events), frozenset({"process.exit"}))) == [4]


def test_probes_are_recognised_without_their_nonces_for_calibration() -> None:
    def events() -> Iterator[Event]:
        log = Log()
        yield log.execed("2", "1", "sh", "probe.sh", "before", BEFORE.nonce, "300")
        yield DnsQuery(Where("d.log", 1), None, seen_in="dns", name=BEFORE.name)
        yield DnsQuery(Where("d.log", 2), None, seen_in="dns", name=AFTER.name)
        yield log.execed("3", "1", "sh", "before", "the dawn")
        yield log.execed("4", "1", "before")

    assert discover(events()) == [
        ProbeRun("before", BEFORE.nonce, ("dns", "syscalls")),
        ProbeRun("after", AFTER.nonce, ("dns",)),
    ]


def test_losses_of_other_kinds_stay() -> None:
    item = Observation("dns", "e", "dnsmasq", proof="declared", losses=[Loss("unparsed", "a line")])
    watch = ProbeWatch([ProbeRun("before", BEFORE.nonce, ("dns",)), ProbeRun("after", AFTER.nonce, ("dns",))])
    watch.seen = {("e", "before"): {"dns.query"}, ("e", "after"): {"dns.query"}}
    watch.judge([item])
    assert (item.proof, [loss.what for loss in item.losses]) == ("proved", ["unparsed"])
