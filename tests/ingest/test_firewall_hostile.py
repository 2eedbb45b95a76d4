"""Firewall evidence that lies, breaks off or never ends."""

from __future__ import annotations

import contextlib
import gzip
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_tools import NAME, hiding, read

from mcpdetect.errors import InputError
from mcpdetect.ingest.firewall import FirewallLog, NftCounters
from mcpdetect.ingest.firewall.netfilter import fields_at
from mcpdetect.ingest.loglines import MAX_LINE
from mcpdetect.model.event import Unparsed
from mcpdetect.model.net import FirewallDrop

LINES = [
    "[  880.640080] MCPD-OUT IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.77 LEN=60 PROTO=TCP SPT=35770 DPT=443 SYN URGP=0 ",
    "[  881.000000] eth0: entered promiscuous mode",
    "[  881.661003] MCPD-OUT IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.77 LEN=60 PROTO=UDP SPT=35771 DPT=53 LEN=9 ",
    "[  882.000000] net_ratelimit: 3 callbacks suppressed",
    '[  883.000000] "REJECT: "IN= OUT=v0 SRC=fe80::1 DST=2001:db8:99::7 LEN=64 PROTO=ICMPv6 TYPE=128 CODE=0 ',
]
WHOLE = "".join(f"{line}\n" for line in LINES)
JOURNAL = '{"MESSAGE":"X IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.77 PROTO=TCP SPT=1 DPT=2","SYSLOG_IDENTIFIER":"kernel"}'
CHAIN = '{"chain": {"family": "ip", "table": "t", "name": "c"}}'
RULE = '{"rule": {"family": "ip", "table": "t", "chain": "c", "handle": 1, "expr": [{"counter": {"packets": 3}}, '
RULE += '{"drop": null}]}}'
FORMS = [
    WHOLE,
    WHOLE.replace("[  88", "Nov 30 11:00:00 h kernel: [  88"),
    f"{JOURNAL}\n{JOURNAL}\n",
    'table inet t {\n\tchain c {\n\t\tcounter packets 12 bytes 34 log prefix "a b" drop # handle 3\n\t}\n}\n',
    f'{{"nftables": [{CHAIN}, {RULE}]}}',
]


def test_cut_at_any_byte_a_log_gives_a_prefix_and_says_that_it_is_cut(tmp_path: Path) -> None:
    whole, _ = read(FirewallLog, tmp_path, WHOLE)
    assert len(whole) == 3
    refused = checked = 0
    for size in range(1, len(WHOLE)):
        try:
            events, seen = read(FirewallLog, tmp_path, WHOLE[:size])
        except InputError:
            refused += 1
            assert size < len("[  880.640080] ")
            continue
        full = [event for event in events if event.where.at <= WHOLE[:size].count("\n")]
        last = [event for event in events if event not in full]
        assert full == whole[: len(full)]
        cut = not WHOLE[:size].endswith("\n")
        assert (("file-truncated", 1) in hiding(seen)) is cut, size
        assert len(last) == cut
        if last and isinstance(last[0], FirewallDrop):
            real = whole[len(full)]
            assert isinstance(real, FirewallDrop)
            assert (last[0].where, last[0].t_ns, last[0].source, last[0].address) == (
                real.where,
                real.t_ns,
                real.source,
                real.address,
            )
            assert last[0].port in (None, real.port)
            assert last[0].transport in (None, real.transport)
        checked += 1
    assert refused < 15
    assert checked > 400


@given(st.binary(max_size=400))
def test_any_bytes_are_events_or_one_clear_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("x")
    with contextlib.suppress(InputError):
        read(FirewallLog, folder, data)


@given(st.data())
def test_damaged_evidence_is_events_or_one_clear_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = bytearray(data.draw(st.sampled_from(FORMS)).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    folder = tmp_path_factory.mktemp("x")
    for opener in (FirewallLog, lambda path, name, declared: NftCounters(path, path, name, declared)):
        try:
            events, seen = read(opener, folder, bytes(text))
        except InputError:
            continue
        # Whatever was not understood is in the account.
        assert any(isinstance(event, Unparsed) for event in events) <= bool(hiding(seen))


@pytest.mark.parametrize(
    "part",
    ["A=", "IN=", "IN= ", "IN=a OUT=", "[", "]", " [SRC=", "kernel: ", "PHYSIN=", "SRC=1.1.1.1 ", "OPT ( ", " ", "<4>"],
)
def test_work_grows_with_the_length_of_a_line_only(part: str, tmp_path: Path) -> None:
    front = "[    1.000000] MCPD-OUT IN= OUT=v0 SRC=10.77.0.2 DST=203.0.113.7 PROTO=TCP SPT=1 DPT=2 "
    text = front + part * ((MAX_LINE - len(front)) // len(part)) + "\n"
    events, seen = read(FirewallLog, tmp_path, text)
    assert (len(events), seen.counts["lines"]) == (1, 1)


def test_a_line_longer_than_is_read_is_cut_and_counted(tmp_path: Path) -> None:
    text = f"{LINES[0]}\n[    1.000000] IN= {'A=' * MAX_LINE}\n{LINES[2]}\n"
    events, seen = read(FirewallLog, tmp_path, text)
    assert [event.kind for event in events] == ["firewall.drop", "unparsed", "firewall.drop"]
    assert [event.where.at for event in events] == [1, 2, 3]
    assert hiding(seen) == [("line-cut", 1)]


def test_a_compressed_log_that_breaks_off_keeps_what_came_before(tmp_path: Path) -> None:
    packed = gzip.compress(WHOLE.encode() + os.urandom(4000))
    path = tmp_path / "kern.log.gz"
    path.write_bytes(packed[:-2000])
    adapter = FirewallLog(path, NAME)
    kinds = [event.kind for event in adapter.events()]
    assert kinds.count("firewall.drop") == 3
    assert ("file-truncated", 1) in [(loss.what, loss.count) for loss in adapter.observation.losses]


@pytest.mark.parametrize("text", [*FORMS])
def test_a_pipe_is_read_like_a_file_once(text: str, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(text,))
    writer.start()
    adapter = FirewallLog(path, NAME)
    events = list(adapter.events())
    writer.join()
    assert events == read(FirewallLog, tmp_path, text)[0]
    if "table" not in text and "nftables" not in text:
        with pytest.raises(InputError, match="was read already"):
            list(adapter.events())


def test_a_system_log_may_begin_with_anything(tmp_path: Path) -> None:
    noise = "Nov 30 10:00:00 h cron[1]: nothing of interest\n" * 8000
    events, seen = read(FirewallLog, tmp_path, noise + WHOLE.replace("[  88", "Nov 30 11:00:00 h kernel: [  88"))
    assert [event.where.at for event in events] == [8001, 8003, 8005]
    assert (seen.clock, seen.counts["other"]) == ("relative", 8002)
    with pytest.raises(InputError, match="is no firewall log"):
        read(FirewallLog, tmp_path, noise)


def test_a_byte_order_mark_and_other_line_ends_do_not_matter(tmp_path: Path) -> None:
    plain, _ = read(FirewallLog, tmp_path, WHOLE)
    windows, seen = read(FirewallLog, tmp_path, b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())
    assert (plain, hiding(seen)) == (windows, [("dropped", 3)])


def test_only_wanted_events_come_and_all_are_counted(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text(WHOLE)
    adapter = FirewallLog(path)
    assert list(adapter.events(frozenset({"unparsed"}))) == []
    assert adapter.observation.counts["packets"] == 3


def test_the_last_fields_of_a_line_are_the_packet_s() -> None:
    assert fields_at(b"IN=a OUT=b SRC=1 IN=c OUT=d SRC=2") == (17, 28)
    assert fields_at(b"IN=aaaaaaaaaaaaaaaa OUT=b SRC=1") == (20, 26)
    assert fields_at(b"nothing") is None
