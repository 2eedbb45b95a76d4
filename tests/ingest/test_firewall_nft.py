"""Counters of nftables listings, as text and as JSON, alone and in pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from log_tools import NAME, hiding, losses, notes, read

from mcpdetect.errors import InputError, Malformed
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.firewall import FirewallLog, NftCounters
from mcpdetect.model.event import Event, Unparsed
from mcpdetect.model.net import FirewallDrop
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where

# Recorded: nft 1.0.6, `nft -a list ruleset`, after two dozen packets of every sort.
RULES = """\
table inet mcpd { # handle 1
	counter mail { # handle 2
		packets 1 bytes 60
	}

	set bad { # handle 3
		type ipv4_addr
		counter
		elements = { 203.0.113.50 counter packets 1 bytes 37, 203.0.113.51 counter packets 0 bytes 0 }
	}

	chain out { # handle 1
		type filter hook output priority filter; policy drop;
		oif "lo" accept # handle 4
		ip daddr @bad drop # handle 5
		ip daddr 203.0.113.60 counter packets 2 bytes 120 tcp dport 25 drop # handle 6
		ip daddr 203.0.113.61 counter name "mail" drop # handle 7
		ip daddr 203.0.113.62 tcp dport vmap { 25 : drop, 26 : accept } # handle 9
		ip daddr 203.0.113.7 log prefix "[h8] DST=9.9.9.9 " flags all counter packets 8 bytes 292 \
reject with icmpx admin-prohibited comment "a counter packets 9 bytes 1 drop }" # handle 10
		ip6 daddr 2001:db8:99::/64 log prefix "H8-DROP6: " counter packets 3 bytes 185 drop # handle 11
		limit rate 1/second log prefix "H8-LIM " counter packets 6 bytes 472 drop # handle 12
		counter packets 3 bytes 4121 log prefix "H8-ALL" level info # handle 13
		counter packets 3 bytes 4121 drop # handle 14
	}
}
"""

# The same rules by `nft -j list ruleset`.
ADDRESS = {"payload": {"protocol": "ip", "field": "daddr"}}


def match(left: object, right: object) -> dict[str, Any]:
    return {"match": {"op": "==", "left": left, "right": right}}


def rule(handle: int, *expr: dict[str, Any]) -> dict[str, Any]:
    return {"rule": {"family": "inet", "table": "mcpd", "chain": "out", "handle": handle, "expr": list(expr)}}


def counter(packets: int) -> dict[str, Any]:
    return {"counter": {"packets": packets, "bytes": packets * 60}}


DROP: dict[str, Any] = {"drop": None}
VERDICTS = {"set": [[25, DROP], [26, {"accept": None}]]}
CHAIN = {"family": "inet", "table": "mcpd", "name": "out", "handle": 1, "hook": "output", "prio": 0, "policy": "drop"}
OBJECTS: list[dict[str, Any]] = [
    {"metainfo": {"version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1}},
    {"table": {"family": "inet", "name": "mcpd", "handle": 1}},
    {"counter": {"family": "inet", "name": "mail", "table": "mcpd", "handle": 2, "packets": 1, "bytes": 60}},
    {"set": {"family": "inet", "name": "bad", "table": "mcpd", "type": "ipv4_addr", "handle": 3}},
    {"chain": CHAIN},
    rule(4, match({"meta": {"key": "oif"}}, "lo"), {"accept": None}),
    rule(5, match(ADDRESS, "@bad"), DROP),
    rule(6, match(ADDRESS, "203.0.113.60"), counter(2), match({"payload": {"field": "dport"}}, 25), DROP),
    rule(7, match(ADDRESS, "203.0.113.61"), {"counter": "mail"}, DROP),
    rule(9, match(ADDRESS, "203.0.113.62"), {"vmap": {"key": {"payload": {"field": "dport"}}, "data": VERDICTS}}),
    rule(
        10,
        match(ADDRESS, "203.0.113.7"),
        {"log": {"prefix": "[h8] DST=9.9.9.9 ", "flags": "all"}},
        counter(8),
        {"reject": {"type": "icmpx", "expr": "admin-prohibited"}},
    ),
    rule(11, match(ADDRESS, "2001:db8:99::/64"), {"log": {"prefix": "H8-DROP6: "}}, counter(3), DROP),
    rule(12, {"limit": {"rate": 1, "per": "second"}}, {"log": {"prefix": "H8-LIM "}}, counter(6), DROP),
    rule(13, counter(3), {"log": {"prefix": "H8-ALL", "level": "info"}}),
    rule(14, counter(3), DROP),
]

HERE = "inet mcpd out hook output"
# line in the text, place in the JSON, action, packets, prefix
GROWN = [
    (17, 9, "drop", 1, HERE),
    (19, 11, "reject", 8, "[h8] DST=9.9.9.9"),
    (20, 12, "drop", 3, "H8-DROP6:"),
    (21, 13, "drop", 6, "H8-LIM"),
    (22, 14, "logged", 3, "H8-ALL"),
    (23, 15, "drop", 3, HERE),
]
UNCOUNTED = {
    "a rule blocks packets that nothing counts": (15, 7),
    "a rule blocks only some of the packets that it counts": (16, 8),
    "a verdict map drops packets that nothing counts": (18, 10),
}


def told(events: list[Event]) -> list[tuple[int, str, int, str]]:
    return [(e.where.at, e.action, e.packets, e.prefix) for e in events if isinstance(e, FirewallDrop)]


@pytest.mark.parametrize("form", ["nft", "nft-json"])
def test_every_counter_of_a_blocking_or_logging_rule_is_an_event(form: str, tmp_path: Path) -> None:
    text = RULES if form == "nft" else json.dumps({"nftables": OBJECTS})
    events, seen = read(FirewallLog, tmp_path, text)
    column = 0 if form == "nft" else 1
    unit = "line" if form == "nft" else "record"
    assert told(events) == [(row[column], *row[2:]) for row in GROWN]
    known = [(e.address, e.source, e.port, e.transport, e.t_ns) for e in events if isinstance(e, FirewallDrop)]
    assert known == [(None, None, None, None, None)] * 6
    assert {event.where.unit for event in events} == {unit}
    assert (seen.format, seen.proof, seen.clock) == (form, "inferred", "none")
    assert seen.watches == {"firewall.drop": "inferred"}
    assert seen.counts == {"rules": 10, "counters": 6, "packets": 24, "events": 6, "unparsed": 0}
    found = {loss.detail: loss.where.at if loss.where else None for loss in losses(seen, "uncounted")}
    assert found == {detail: places[column] for detail, places in UNCOUNTED.items()}
    assert all(loss.touches == ["firewall.drop"] for loss in losses(seen, "uncounted"))
    assert notes(seen) == [("from-zero", 1)]


def table(*rules: str, policy: str = "accept", hook: str = "output") -> str:
    body = "\n".join(f"\t\t{line}" for line in rules)
    head = f"\t\ttype filter hook {hook} priority filter; policy {policy};\n"
    return f"table inet t {{\n\tchain c {{\n{head}{body}\n\t}}\n}}\n"


def test_a_listing_of_zero_packets_is_alive_and_says_none(tmp_path: Path) -> None:
    declared = Declared(tool="nft 1.0.6", begin_ns=1, end_ns=2, complete=True, scope="the denying rules")
    events, seen = read(FirewallLog, tmp_path, table('oifname "eth0" counter packets 0 bytes 0 drop'), declared)
    assert events == []
    assert (seen.proof, seen.watches, seen.clock) == ("declared", {"firewall.drop": "declared"}, "epoch")
    assert (seen.begin_ns, seen.end_ns, seen.complete, seen.scope) == (1, 2, True, "the denying rules")
    assert hiding(seen) == []


def test_a_declared_listing_speaks_at_the_end_of_its_window(tmp_path: Path) -> None:
    events, _ = read(FirewallLog, tmp_path, table("counter packets 5 bytes 238 drop"), Declared(begin_ns=1, end_ns=2))
    prefix = "inet t c hook output"
    assert events == [FirewallDrop(Where(NAME, 4), 2, "drop", packets=5, prefix=prefix)]


@pytest.mark.parametrize(
    ("rules", "policy", "grown", "uncounted"),
    [
        (["ip daddr 10.0.0.0/8 accept"], "accept", [], 0),
        (["counter packets 5 bytes 9 accept"], "accept", [], 0),
        (["counter packets 5 bytes 9"], "accept", [], 0),
        (["counter packets 5 bytes 9"], "drop", [("drop", 5)], 0),
        (['counter packets 5 bytes 9 log prefix "X "'], "drop", [("drop", 5)], 0),
        (["tcp dport 443 accept"], "drop", [], 1),
        ([], "drop", [], 1),
        (["tcp dport 443 accept", "counter packets 2 bytes 9 reject with tcp reset"], "drop", [("reject", 2)], 0),
        (["accept"], "drop", [], 0),
        (["counter packets 0 bytes 0 tcp dport 25 drop"], "accept", [], 0),
        (["counter packets 4 bytes 9 limit rate 1/second drop"], "accept", [], 1),
        (['counter packets 4 bytes 9 log prefix "IN ACCEPT " accept'], "accept", [("accept", 4)], 0),
        (["tcp dport { 25, 26 } counter packets 4 bytes 9 drop"], "accept", [("drop", 4)], 0),
        (["jump deny"], "accept", [], 0),
        (['counter packets 3 bytes 9 xt target "REJECT"'], "accept", [("reject", 3)], 0),
        (["counter drop"], "accept", [], 1),
        (['log flags tcp sequence,options prefix "DENY" counter packets 1 bytes 9 drop'], "accept", [("drop", 1)], 0),
    ],
)
def test_what_one_rule_tells(
    rules: list[str], policy: str, grown: list[tuple[str, int]], uncounted: int, tmp_path: Path
) -> None:
    events, seen = read(FirewallLog, tmp_path, table(*rules, policy=policy))
    assert [(action, packets) for _, action, packets, _ in told(events)] == grown
    assert hiding(seen) == [("uncounted", uncounted)] * (uncounted > 0)


def test_a_listing_that_counts_nothing_shows_nothing(tmp_path: Path) -> None:
    _, seen = read(FirewallLog, tmp_path, table("counter packets 5 bytes 9 accept"))
    assert (seen.proof, seen.watches, notes(seen)) == ("absent", {}, [("no-counter", 1)])


def test_a_shared_counter_counts_blocked_packets_only_if_all_its_rules_block(tmp_path: Path) -> None:
    named = (
        'table ip t {\n\tcounter n {\n\t\tpackets 7 bytes 9\n\t}\n\tchain c {\n\t\ttcp dport 1 counter name "n" drop\n'
    )
    events, seen = read(FirewallLog, tmp_path, named + '\t\tudp dport 1 counter name "n" reject\n\t}\n}\n')
    assert (told(events), hiding(seen)) == ([(6, "drop", 7, "ip t c")], [])
    events, seen = read(FirewallLog, tmp_path, named + '\t\tudp dport 1 counter name "n" accept\n\t}\n}\n')
    assert (told(events), hiding(seen)) == ([], [("uncounted", 1)])


def test_a_named_map_of_verdicts_that_drops_is_uncounted(tmp_path: Path) -> None:
    for verdict, count in (("drop", 1), ("accept", 0)):
        text = (
            f"table ip t {{\n\tmap m {{\n\t\ttype inet_service : verdict\n\t\telements = {{ 25 : {verdict},\n\t\t\t\t"
            "     26 : accept }\n\t}\n\tchain c {\n\t\ttcp dport vmap @m\n\t}\n}\n"
        )
        _, seen = read(FirewallLog, tmp_path, text)
        assert hiding(seen) == [("uncounted", 1)] * count


def pair(folder: Path, before: str, after: str) -> tuple[list[Event], Observation]:
    (folder / "before").write_text(before)
    return read(lambda path, name, declared: NftCounters(folder / "before", path, name, declared), folder, after)


@pytest.mark.parametrize("form", ["nft", "nft-json"])
def test_two_listings_give_the_difference(form: str, tmp_path: Path) -> None:
    if form == "nft":
        before = RULES.replace("packets 8 bytes", "packets 5 bytes").replace("packets 1 bytes 60", "packets 0 bytes 0")
        after = RULES
    else:
        changed = json.dumps({"nftables": OBJECTS}).replace('"packets": 8', '"packets": 5')
        before = changed.replace('"packets": 1,', '"packets": 0,')
        after = json.dumps({"nftables": OBJECTS})
    events, seen = pair(tmp_path, before, after)
    column = 0 if form == "nft" else 1
    assert told(events) == [(GROWN[0][column], "drop", 1, HERE), (GROWN[1][column], "reject", 3, "[h8] DST=9.9.9.9")]
    assert notes(seen) == []
    assert hiding(seen) == [("uncounted", 1)] * 3


def test_a_counter_that_fell_or_went_is_a_loss(tmp_path: Path) -> None:
    before = table("counter packets 9 bytes 9 drop", "tcp dport 1 counter packets 4 bytes 9 drop")
    events, seen = pair(tmp_path, before, table("counter packets 2 bytes 9 drop"))
    assert [packets for _, _, packets, _ in told(events)] == [2]
    assert hiding(seen) == [("counter-reset", 1), ("counter-gone", 1)]


def test_equal_rules_are_matched_in_their_order(tmp_path: Path) -> None:
    before = table("counter packets 1 bytes 9 drop", "counter packets 0 bytes 9 drop")
    events, _ = pair(tmp_path, before, table("counter packets 1 bytes 9 drop", "counter packets 3 bytes 9 drop"))
    assert [(line, packets) for line, _, packets, _ in told(events)] == [(5, 3)]


def test_listings_of_two_forms_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="of different forms"):
        pair(tmp_path, json.dumps({"nftables": OBJECTS}), RULES)
    with pytest.raises(Malformed, match="is no nftables listing"):
        pair(tmp_path, "nothing", RULES)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (table("counter packets 1 bytes 9 drop") + "nonsense here\n", "text outside of every table"),
        (table("counter packets 1 bytes 9 drop") + "}\n", "a brace closes nothing"),
        (table("counter packets 1 bytes 9 drop") + "fence x {\n}\n", "a block that is no table"),
    ],
)
def test_what_is_no_table_is_counted(text: str, reason: str, tmp_path: Path) -> None:
    events, seen = read(FirewallLog, tmp_path, text)
    assert [event.reason for event in events if isinstance(event, Unparsed)] == [reason]
    assert told(events) == [(4, "drop", 1, "inet t c hook output")]
    assert hiding(seen) == [("unparsed", 1)]


def test_an_object_without_its_parts_is_counted(tmp_path: Path) -> None:
    bad: list[object] = [7, {}, {"rule": {"family": "inet"}}, {"chain": {"name": 3}}, {"rule": 1, "chain": 2}]
    bad += [
        {"counter": {"family": "i", "table": "t", "name": "n", "packets": -1}},
        rule(1, {"counter": {"packets": "x"}}),
    ]
    events, seen = read(
        FirewallLog, tmp_path, json.dumps({"nftables": [*bad, {"chain": CHAIN}, rule(2, counter(1), DROP)]})
    )
    assert [event.where.at for event in events] == [1, 2, 3, 4, 5, 6, 7, 9]
    assert hiding(seen) == [("unparsed", 7)]


@pytest.mark.parametrize(
    "text", ['{"nftables": 3}', '{"nftables": [', '{"nftables": []} x', '{"nftables": ' + "[" * 5000]
)
def test_json_that_is_no_listing_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(Malformed):
        read(FirewallLog, tmp_path, text)


def test_a_listing_that_is_cut_says_so_at_every_byte(tmp_path: Path) -> None:
    whole = told(read(FirewallLog, tmp_path, RULES)[0])
    tried = 0
    for size in range(20, len(RULES) - 2, 7):
        events, seen = read(FirewallLog, tmp_path, RULES[:size])
        assert ("file-truncated", 1) in hiding(seen), size
        assert set(told(events)) <= set(whole), size
        tried += 1
    assert tried > 150
