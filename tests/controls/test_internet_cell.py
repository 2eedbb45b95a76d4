"""The fake internet in a real cell: what its journal says it received is byte for byte what a client sent."""

import base64
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from controls.recorder.cell import GATEWAY4, Cell
from controls.recorder.internet.authority import authority_file, trust_store
from controls.recorder.internet.names import Names, address4, address6, load_names
from controls.recorder.probes import cache_folder
from controls.recorder.tools import missing

PROBLEM = missing()
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"cannot record here: {PROBLEM}")

NAME = "api.example.com"
BIG = "/big is longer than one window of HTTP/2. " * 4000
TABLE: dict[str, Any] = {
    NAME: {"http": [{"path": "/v1/*", "json": {"items": [1]}}, {"path": "/big", "text": BIG, "chunked": True}]}
}
WHATS = ["tcp", "udp", "dns-udp", "dns-tcp", "dot", "doh", "http1", "https1", "h2c", "h2", "connect", "socks"]
FAMILIES = ("ipv4", "ipv6")
EVERY_BYTE = bytes(range(256))


class Seen:
    """What the client said of one cell, and what the journal did."""

    def __init__(self, said: list[dict[str, Any]], lines: list[dict[str, Any]]) -> None:
        self.said = said
        self.lines = lines

    def client(self, what: str, family: str) -> list[dict[str, Any]]:
        return [one for one in self.said if (one["what"], one["family"]) == (what, family)]

    def connection(self, port: int) -> list[dict[str, Any]]:
        """Return all lines of the connection that came from a port."""
        number = next(
            line["connection"] for line in self.lines if line["kind"] == "connection" and line["peer"][1] == port
        )
        return [line for line in self.lines if line.get("connection") == number]


def joined(lines: list[dict[str, Any]], layer: str) -> bytes:
    return b"".join(base64.b64decode(line["bytes"]) for line in lines if line.get("layer") == layer)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("cell")
    (folder / "ssl").mkdir()
    trust_store(authority_file(cache_folder()), folder / "ssl")
    with Cell(folder, names=TABLE, capture=False) as cell:
        done = subprocess.run(
            [
                *("nsenter", f"--net=/proc/{cell.keeper}/ns/net", "--", sys.executable, "-W", "error"),
                str(Path(__file__).parent / "internet_client.py"),
                str(folder / "ssl/certs/ca-certificates.crt"),
                *(address4(NAME), address6(NAME), NAME),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        cell.close_watchers()
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (folder / "internet.jsonl").read_text().splitlines()]
    return Seen(json.loads(done.stdout), lines)


def test_every_sink_was_used_over_both_families(seen: Seen) -> None:
    once = Counter({(what, family): 1 for what in [*WHATS, "untrusting", "address"] for family in FAMILIES})
    once.update({("udp", family): 2 for family in FAMILIES})
    assert Counter((one["what"], one["family"]) for one in seen.said) == once


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("what", [one for one in WHATS if "udp" not in one and one not in ("connect", "socks")])
def test_the_journal_has_the_very_bytes_of_a_connection(what: str, family: str, seen: Seen) -> None:
    (one,) = seen.client(what, family)
    lines = seen.connection(one["port"])
    layer = "tls" if what in ("dot", "doh", "https1", "h2") else "tcp"
    assert joined(lines, layer) == base64.b64decode(one["sent"])
    assert joined(lines, "tcp" if layer == "tls" else "tls") == b""
    ports = {"tcp": 4100, "dns-tcp": 53, "dot": 853, "doh": 443, "http1": 8080, "https1": 8443, "h2c": 9080, "h2": 9443}
    assert lines[0]["to"] == [address4(NAME) if family == "ipv4" else address6(NAME), ports[what]]
    assert lines[0]["peer"][0] == ("10.200.0.2" if family == "ipv4" else "fd00:200::2")
    assert lines[0]["name"] == NAME
    assert (lines[-1]["kind"], lines[-1]["by"]) == ("closed", "client")
    assert [(line["sni"], line["alpn"]) for line in lines if line["kind"] == "tls"] == {
        "tcp": [],
        "tls": [(NAME, "h2" if what == "h2" else None)],
    }[layer]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_journal_has_the_very_bytes_of_datagrams(family: str, seen: Seen) -> None:
    sent = [one for what in ("udp", "dns-udp") for one in seen.client(what, family)]
    ports = {one["port"] for one in sent}
    lines = [line for line in seen.lines if line["kind"] == "datagram" and line["peer"][1] in ports]
    assert [line["bytes"] for line in lines] == [one["sent"] for one in sent]
    assert [line["to"][1] for line in lines] == [4200, 4200, 4200, 53]
    assert {line["to"][0] for line in lines} == {address4(NAME) if family == "ipv4" else address6(NAME)}
    assert {line["name"] for line in lines} == {NAME}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_no_protocol_claims_comes_back(family: str, seen: Seen) -> None:
    for what in ("tcp", "udp"):
        assert [one["got"] for one in seen.client(what, family)] == [one["sent"] for one in seen.client(what, family)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_query_gets_the_same_answer_by_every_road(family: str, seen: Seen) -> None:
    known = Names("answer", load_names(TABLE))
    sent = base64.b64decode(seen.client("dns-udp", family)[0]["sent"])
    expected = known.answer(sent).message
    assert expected is not None
    assert base64.b64decode(seen.client("dns-udp", family)[0]["got"]) == expected
    assert base64.b64decode(seen.client("dns-tcp", family)[0]["got"])[2:] == expected
    (doh,), (dot,) = seen.client("doh", family), seen.client("dot", family)
    expected = known.answer(bytes.fromhex(doh["message"])).message
    assert expected is not None
    assert base64.b64decode(doh["got"]) == expected * 2
    assert base64.b64decode(dot["got"])[2:] == expected


def test_every_query_is_in_the_journal_with_its_road(seen: Seen) -> None:
    roads = Counter(line["over"] for line in seen.lines if line["kind"] == "query")
    assert roads == {"udp": 2, "tcp": 2, "tls": 2, "https": 4}
    assert {line["name"] for line in seen.lines if line["kind"] == "query"} == {NAME}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("what", "scheme"), [("http1", "http"), ("https1", "https")])
def test_requests_are_answered_on_one_connection(what: str, scheme: str, family: str, seen: Seen) -> None:
    (one,) = seen.client(what, family)
    assert base64.b64decode(one["got"]) == b'{"items": [1]}' + b"{}"
    found = [line for line in seen.connection(one["port"]) if line["kind"] == "request"]
    assert [
        {key: value for key, value in line.items() if key not in ("t", "kind", "connection")} for line in found
    ] == [
        {
            "protocol": "http/1.1",
            "scheme": scheme,
            "method": "GET",
            "host": NAME,
            "path": "/v1/items?a=b",
            "headers": [["host", NAME], ["accept", "application/json"]],
            "body": "",
        },
        {
            "protocol": "http/1.1",
            "scheme": scheme,
            "method": "POST",
            "host": NAME,
            "path": "/collect",
            "headers": [["host", NAME], ["transfer-encoding", "chunked"]],
            "body": base64.b64encode(EVERY_BYTE + b"abc").decode(),
        },
    ]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("what", "scheme"), [("h2c", "http"), ("h2", "https")])
def test_http2_gives_more_than_a_window_holds(what: str, scheme: str, family: str, seen: Seen) -> None:
    (one,) = seen.client(what, family)
    assert base64.b64decode(one["got"]) == BIG.encode()
    (line,) = [line for line in seen.connection(one["port"]) if line["kind"] == "request"]
    assert (line["protocol"], line["scheme"], line["method"], line["host"], line["path"], line["headers"]) == (
        "h2",
        scheme,
        "POST",
        NAME,
        "/big",
        [],
    )
    assert base64.b64decode(line["body"]) == EVERY_BYTE


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ["connect", "socks"])
def test_a_proxy_leads_to_tls_inside(kind: str, family: str, seen: Seen) -> None:
    (one,) = seen.client(kind, family)
    lines = seen.connection(one["port"])
    assert joined(lines, "tcp") == bytes.fromhex(one["opening"])
    assert joined(lines, "tls") == base64.b64decode(one["sent"])
    assert [line["to"] for line in lines if line["kind"] == "tunnel"] == [[NAME, 443]]
    assert base64.b64decode(one["got"]) == b"{}"


@pytest.mark.parametrize("family", FAMILIES)
def test_who_does_not_trust_the_authority_is_refused_and_an_address_has_a_certificate(family: str, seen: Seen) -> None:
    assert seen.client("untrusting", family)[0]["error"] == "self-signed certificate in certificate chain"
    assert seen.client("address", family)[0]["error"] == ""
    address = address4(NAME) if family == "ipv4" else address6(NAME)
    failed = [line for line in seen.lines if line["kind"] == "tls-failed"]
    of = {line["connection"]: line["to"][0] for line in seen.lines if line["kind"] == "connection"}
    assert [(line["sni"], line["why"]) for line in failed if of[line["connection"]] == address] == [
        (NAME, "TLSV1_ALERT_UNKNOWN_CA")
    ]


def test_nothing_but_the_client_is_in_the_journal(seen: Seen) -> None:
    assert GATEWAY4 not in {line["peer"][0] for line in seen.lines if "peer" in line}
    assert Counter(line["kind"] for line in seen.lines if line["kind"] in ("connection", "datagram")) == {
        "connection": 2 * 12,
        "datagram": 2 * 4,
    }
