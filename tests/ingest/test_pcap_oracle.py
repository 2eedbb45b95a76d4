"""dpkt as a second opinion on generated captures: counts, questions, names."""

from __future__ import annotations

import io
import random
from collections import Counter
from pathlib import Path
from typing import Any

import dpkt  # type: ignore[import-untyped]
from packets import CLIENT, SERVER, answer, client_hello, eth, extension, flow, ip4, pcap, question, read, record, udp

from mcpdetect.model.event import Event
from mcpdetect.model.net import DnsAnswer, DnsQuery, NetFlow, TlsClientHello


def capture(seed: int) -> bytes:
    """Return a capture of questions, answers and TLS connections in random order."""
    chosen = random.Random(seed)  # noqa: S311 (a test, no secret)
    frames: list[bytes] = []
    for index in range(60):
        name = f"host-{chosen.randrange(20)}.example.test"
        ident, port = chosen.randrange(65536), 20000 + index
        if chosen.random() < 0.7:
            frames.append(eth(ip4(CLIENT, SERVER, 17, udp(port, 53, question(name, ident=ident)))))
            address = bytes([203, 0, 113, chosen.randrange(256)])
            reply = answer(name, (b"\xc0\x0c", 1, address), ident=ident)
            frames.append(eth(ip4(SERVER, CLIENT, 17, udp(53, port, reply))))
        else:
            hello = record(client_hello(name, extension(21, bytes(chosen.randrange(300)))))
            frames += flow([(0, hello)], port=port)
    return pcap(frames)


def opinion(data: bytes) -> tuple[Counter[Any], Counter[Any], Counter[Any], Counter[Any]]:
    """Return dpkt's packets by conversation, questions, address records and server names."""
    talks: Counter[Any] = Counter()
    asked: Counter[Any] = Counter()
    given: Counter[Any] = Counter()
    named: Counter[Any] = Counter()
    for _, frame in dpkt.pcap.Reader(io.BytesIO(data)):
        packet = dpkt.ethernet.Ethernet(frame).data
        segment = packet.data
        talks[frozenset([(packet.src, segment.sport), (packet.dst, segment.dport)])] += 1
        if isinstance(segment, dpkt.udp.UDP):
            message = dpkt.dns.DNS(segment.data)
            if message.qr:
                given.update((record.name, ".".join(map(str, record.ip))) for record in message.an)
            else:
                asked.update(one.name for one in message.qd)
        elif segment.data:
            records, _ = dpkt.ssl.tls_multi_factory(segment.data)
            hello = dpkt.ssl.TLSHandshake(records[0].data).data
            named.update(body[5:].decode() for kind, body in hello.extensions if kind == 0)
    return talks, asked, given, named


def ours(events: list[Event]) -> tuple[Counter[Any], Counter[Any], Counter[Any], Counter[Any]]:
    """Return the same of our events."""
    raw = {CLIENT: bytes([10, 77, 0, 2]), SERVER: bytes([203, 0, 113, 7])}
    talks = Counter(
        {
            frozenset([(raw[event.source], event.source_port), (raw[event.address], event.port)]): event.packets_out
            + event.packets_in
            for event in events
            if isinstance(event, NetFlow)
        }
    )
    return (
        talks,
        Counter(event.name for event in events if isinstance(event, DnsQuery)),
        Counter((one.name, one.value) for event in events if isinstance(event, DnsAnswer) for one in event.records),
        Counter(event.sni for event in events if isinstance(event, TlsClientHello)),
    )


def test_dpkt_sees_the_same(tmp_path: Path) -> None:
    compared = 0
    for seed in range(8):
        data = capture(seed)
        events, observation = read(tmp_path, data)
        theirs = opinion(data)
        assert ours(events) == theirs
        assert observation.losses == []
        compared += sum(theirs[0].values())
    assert compared > 1000
