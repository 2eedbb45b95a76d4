"""The table of names: what each key answers, how names are found, and every mistake told by its place."""

import struct
from typing import Any

import dpkt  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controls.catalog import load_control
from controls.recorder.internet.answers import Request, TableError, page_for
from controls.recorder.internet.names import Names, address4, address6, load_names
from controls.recorder.internet.wire import TYPES, looks_like_query
from mcpdetect.errors import ConfigError

TABLE: dict[str, Any] = {
    "api.example.com": {"a": ["192.0.2.1", "192.0.2.2"], "aaaa": "2001:db8::1", "ttl": 7},
    "v4.example.com": {"answer": "ipv4"},
    "none.example.com": {"a": [], "aaaa": []},
    "www.example.com": {"cname": "cdn.example.net"},
    "loop.example.com": {"cname": "loop.example.com"},
    "dead.example.com": {"cname": "gone.example.com"},
    "gone.example.com": {"answer": "nxdomain"},
    "broken.example.com": {"answer": "servfail"},
    "closed.example.com": {"answer": "refused"},
    "mute.example.com": {"answer": "silent"},
    "slow.example.com": {"delay_ms": 1500},
    "note.example.com": {"txt": ["v=spf1 -all", "x" * 300]},
    "post.example.com": {"mx": ["10 mail.example.com", "20 spare.example.com"]},
    "new.example.com": {"https": ["1 . alpn=h2,h3 port=8443 ipv4hint=192.0.2.9 ech=AEX+DQ=="]},
    "*.wild.example.com": {"a": "192.0.2.77"},
    "*.deep.wild.example.com": {"a": "192.0.2.78"},
}
KINDS = {**TYPES, "NS": 2}


def query(name: str, kind: str, room: int | None = None) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    extra = b"\0" + struct.pack(">HHIH", 41, room, 0, 0) if room else b""
    head = struct.pack(">HHHHHH", 0x1234, 0x0100, 1, 0, 0, 1 if room else 0)
    return head + labels + b"\0" + struct.pack(">HH", KINDS[kind], 1) + extra


def asked(name: str, kind: str, mode: str = "answer", table: dict[str, Any] | None = None) -> dpkt.dns.DNS:
    message = Names(mode, load_names(TABLE if table is None else table)).answer(query(name, kind)).message
    assert message is not None
    return dpkt.dns.DNS(message)


def values(answer: dpkt.dns.DNS) -> list[tuple[str, int, bytes]]:
    return [(one.name, one.ttl, bytes(one.rdata)) for one in answer.an]


def raw(name: str, kind: str) -> list[bytes]:
    """Return the data of every record, by walking the answer: a pointer, then ten bytes, the last two its size."""
    asked = query(name, kind, 4096)
    message = Names("answer", load_names(TABLE)).answer(asked).message
    assert message is not None
    at = len(query(name, kind))
    found = []
    while at < len(message):
        assert message[at : at + 2] == b"\xc0\x0c"
        size = int.from_bytes(message[at + 10 : at + 12], "big")
        found.append(message[at + 12 : at + 12 + size])
        at += 12 + size
    return found


def test_addresses_are_those_of_the_table() -> None:
    assert values(asked("api.example.com", "A")) == [
        ("api.example.com", 7, b"\xc0\0\2\1"),
        ("api.example.com", 7, b"\xc0\0\2\2"),
    ]
    assert values(asked("API.example.com", "AAAA")) == [
        ("API.example.com", 7, b"\x20\x01\x0d\xb8" + bytes(11) + b"\x01")
    ]
    assert values(asked("none.example.com", "A")) == values(asked("none.example.com", "AAAA")) == []
    assert len(values(asked("v4.example.com", "A"))) == 1
    assert values(asked("v4.example.com", "AAAA")) == []


def test_an_alias_is_followed_to_the_address_of_its_target() -> None:
    answer = asked("www.example.com", "A")
    assert [(one.name, one.type) for one in answer.an] == [("www.example.com", 5), ("cdn.example.net", 1)]
    assert answer.an[0].cname == "cdn.example.net"
    assert ".".join(str(byte) for byte in answer.an[1].rdata) == address4("cdn.example.net")
    assert [one.type for one in asked("www.example.com", "CNAME").an] == [5]


def test_an_alias_of_itself_ends() -> None:
    assert [one.type for one in asked("loop.example.com", "A").an] == [5] * 8 + [1]


def test_the_code_is_that_of_the_last_name() -> None:
    answer = asked("dead.example.com", "A")
    assert (answer.rcode, [one.type for one in answer.an]) == (3, [5])
    codes = {name: asked(f"{name}.example.com", "A").rcode for name in ("gone", "broken", "closed", "api")}
    assert codes == {"gone": 3, "broken": 2, "closed": 5, "api": 0}


def test_silence_and_delay() -> None:
    names = Names("answer", load_names(TABLE))
    assert names.answer(query("mute.example.com", "A")).message is None
    slow = names.answer(query("slow.example.com", "A"))
    assert slow.message is not None
    assert slow.delay == 1.5
    assert names.answer(query("api.example.com", "A")).delay == 0


def test_other_records_have_their_wire_form() -> None:
    assert raw("note.example.com", "TXT") == [b"\x0bv=spf1 -all", b"\xff" + b"x" * 255 + b"\x2d" + b"x" * 45]
    assert raw("post.example.com", "MX") == [
        b"\0\x0a\4mail\7example\3com\0",
        b"\0\x14\5spare\7example\3com\0",
    ]
    # RFC 9460 appendix D: priority, target, then keys in order: alpn (1), port (3), ipv4hint (4), ech (5).
    assert raw("new.example.com", "HTTPS") == [
        b"\0\1\0" + b"\0\1\0\6\2h2\2h3" + b"\0\3\0\2\x20\xfb" + b"\0\4\0\4\xc0\0\2\x09" + b"\0\5\0\4\0\x45\xfe\x0d"
    ]


def test_what_the_table_does_not_say_is_as_everywhere() -> None:
    assert values(asked("post.example.com", "A"))[0][2] == bytes(
        int(part) for part in address4("post.example.com").split(".")
    )
    assert values(asked("post.example.com", "TXT")) == []
    assert (asked("other.example.com", "NS").rcode, values(asked("other.example.com", "NS"))) == (0, [])
    assert asked("other.example.com", "A", "nxdomain").rcode == 3
    # The table's own answer holds whatever the cell's is.
    assert values(asked("api.example.com", "A", "nxdomain", {"api.example.com": {"answer": "answer"}})) != []


def test_the_nearest_pattern_wins() -> None:
    names = Names("answer", load_names({**TABLE, "*": {"tcp": "swallow"}}))
    found = {
        name: names.find(name).records.get("A")
        for name in ("a.wild.example.com", "a.b.wild.example.com", "x.deep.wild.example.com", "wild.example.com")
    }
    assert found == {
        "a.wild.example.com": (b"\xc0\0\2\x4d",),
        "a.b.wild.example.com": (b"\xc0\0\2\x4d",),
        "x.deep.wild.example.com": (b"\xc0\0\2\x4e",),
        "wild.example.com": None,
    }
    assert names.find("wild.example.com").tcp == names.find("192.0.2.200").tcp == "swallow"
    assert names.find("A.WILD.example.com.").tcp == "echo"


def test_an_address_has_the_name_it_was_given_to() -> None:
    names = Names("answer", load_names(TABLE))
    assert names.name_of("192.0.2.2") == "api.example.com"
    assert names.name_of(address4("later.example.com")) is None
    names.answer(query("later.example.com", "A"))
    assert names.name_of(address4("later.example.com")) == "later.example.com"
    assert names.name_of(address6("later.example.com")) == "later.example.com"


@pytest.mark.parametrize(("room", "cut"), [(None, True), (512, True), (1232, True), (4096, False)])
def test_a_long_answer_over_udp_is_cut_where_the_client_has_no_room(room: int | None, cut: bool) -> None:
    names = Names("answer", load_names({"long.example.com": {"txt": ["y" * 200] * 7}}))
    message = names.answer(query("long.example.com", "TXT", room)).message
    assert message is not None
    assert (bool(message[2] & 2), len(dpkt.dns.DNS(message).an)) == ((True, 0) if cut else (False, 7))
    whole = names.answer(query("long.example.com", "TXT", room), stream=True).message
    assert whole is not None
    assert len(dpkt.dns.DNS(whole).an) == 7


@given(data=st.binary(max_size=80))
def test_any_bytes_are_a_query_or_none(data: bytes) -> None:
    names = Names("answer", load_names(TABLE))
    answer = names.answer(data).message
    assert answer is None or answer[:2] == data[:2]
    assert looks_like_query(data) in (True, False)


@given(cut=st.integers(0, len(query("api.example.com", "A", 4096)) - 1))
def test_a_cut_query_is_not_taken_for_one(cut: int) -> None:
    whole = query("api.example.com", "A", 4096)
    assert looks_like_query(whole)
    # What is behind the question may be missing: the count says that it was there.
    assert looks_like_query(whole[:cut]) == (cut >= len(query("api.example.com", "A")))


@pytest.mark.parametrize(
    ("table", "place", "problem"),
    [
        ({"a.test": []}, "names/a.test", "must be a mapping"),
        ({"a.test": {"adress": "1"}}, "names/a.test", "unknown key"),
        ({"a.test": {"answer": "maybe"}}, "names/a.test/answer", "must be one of answer, ipv4"),
        ({"a.test": {"tcp": "smile"}}, "names/a.test/tcp", "must be one of echo, swallow, close"),
        ({"a.test": {"ttl": -1}}, "names/a.test/ttl", "must be a number that is not negative"),
        ({"a.test": {"delay_ms": True}}, "names/a.test/delay_ms", "must be a number that is not negative"),
        ({"a.test": {"a": "300.1.1.1"}}, "names/a.test/a", "Octet 300"),
        ({"a.test": {"aaaa": "1.2.3.4"}}, "names/a.test/aaaa", "At least 3 parts"),
        ({"a.test": {"cname": ["b.test", "c.test"]}}, "names/a.test/cname", "must be one name"),
        ({"a.test": {"cname": "b..test"}}, "names/a.test/cname", "is no DNS name"),
        ({"a.test": {"cname": "b.test", "a": "192.0.2.1"}}, "names/a.test", "has no other records"),
        ({"a.test": {"mx": "mail.test"}}, "names/a.test/mx", "invalid literal for int"),
        ({"a.test": {"https": "1"}}, "names/a.test/https", "is no HTTPS record"),
        ({"a.test": {"https": "1 . shape=round"}}, "names/a.test/https", "is no parameter"),
        ({"a.test": {"alpn": "h2"}}, "names/a.test/alpn", "must be a list"),
        ({"a.test": {"http": {}}}, "names/a.test/http", "must be a list of pages"),
        ({"a.test": {"http": [{"json": 1, "text": ""}]}}, "names/a.test/http/0", "a page has one body"),
        ({"a.test": {"http": [{}, {"status": 99}]}}, "names/a.test/http/1/status", "between 200 and 599"),
        ({"a.test": {"http": [{"base64": "?"}]}}, "names/a.test/http/0/base64", "is no base64"),
        ({"a.test": {"http": [{"pth": "/"}]}}, "names/a.test/http/0", "unknown key"),
    ],
)
def test_a_mistake_is_told_by_its_place(table: dict[str, Any], place: str, problem: str) -> None:
    with pytest.raises(TableError, match=problem) as told:
        load_names(table)
    assert told.value.place == place


def test_a_mistake_in_a_control_is_told_by_file_and_line(tmp_path: Any) -> None:
    folder = tmp_path / "egress" / "made"
    folder.mkdir(parents=True)
    (folder / "control.yaml").write_text(
        """plants: nothing
variants:
  sh-one:
    truth: silent
    why: made up
    run: [/bin/sh]
    axes: {runtime: sh}
    expect: {}
    cell:
      names:
        api.example.com:
          http:
            - path: /a
              status: 700
"""
    )
    with pytest.raises(ConfigError, match="between 200 and 599") as told:
        load_control(folder)
    assert (told.value.file, told.value.place) == (str(folder / "control.yaml"), "line 14")


def page(path: str, accept: str = "", method: str = "GET", table: Any = ()) -> tuple[int, str, bytes]:
    pages = load_names({"a.test": {"http": list(table)}})["a.test"].pages
    headers = (("accept", accept),) if accept else ()
    reply = page_for(Request("http/1.1", "http", method, "a.test", path, headers, b""), pages)
    return reply.status, dict(reply.headers)["content-type"], reply.body


@pytest.mark.parametrize(
    ("accept", "kind", "start"),
    [
        ("", "application/json", b"{}"),
        ("*/*", "application/json", b"{}"),
        ("application/json, text/plain, */*", "application/json", b"{}"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8", b"<!doctype html>"),
        ("text/plain", "text/plain; charset=utf-8", b"ok\n"),
    ],
)
def test_without_a_page_the_client_gets_what_it_accepts(accept: str, kind: str, start: bytes) -> None:
    status, got, body = page("/any", accept)
    assert (status, got, body[: len(start)]) == (200, kind, start)


def test_the_first_page_that_fits_answers() -> None:
    table = [
        {"path": "/v1/*", "method": "post", "status": 201, "json": [1]},
        {"path": "/v1/*", "text": "<p>seen</p>", "headers": {"X-A": 1}},
        {"path": "/raw", "base64": "AP8=", "type": "image/png"},
        {"status": 404},
    ]
    assert page("/v1/a?b=/raw", method="POST", table=table) == (201, "application/json", b"[1]")
    assert page("/v1/a", table=table) == (200, "text/html; charset=utf-8", b"<p>seen</p>")
    assert page("/raw", table=table) == (200, "image/png", b"\0\xff")
    assert page("/else", "text/html", table=table) == (404, "text/plain; charset=utf-8", b"")
