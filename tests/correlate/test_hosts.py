"""Hosts are compared label by label, and addresses are known in whatever form they are written."""

from __future__ import annotations

import pytest

from mcpdetect.correlate.hosts import expected, host_and_port, is_local_name, literal_address, matches
from mcpdetect.model.inputs import Expectations, ExpectedHost


@pytest.mark.parametrize(
    ("pattern", "host", "covered"),
    [
        ("example.com", "example.com", True),
        ("example.com", "EXAMPLE.com.", True),
        ("example.com", "api.example.com", False),
        ("example.com", "example.com.evil.test", False),
        ("example.com", "notexample.com", False),
        ("*.example.com", "api.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", ".example.com", False),
        ("*.example.com", "evilexample.com", False),
        (".example.com", "example.com", True),
        (".example.com", "api.example.com", True),
        (".example.com", "evilexample.com", False),
        ("localhost", "localhost.evil.test", False),
        ("127.0.0.1", "127.0.0.1.evil.test", False),
        ("203.0.113.0/24", "203.0.113.9", True),
        ("203.0.113.0/24", "203.0.114.9", False),
        ("203.0.113.0/24", "203.0.113.9.evil.test", False),
        ("203.0.113.0/24", "2001:db8::1", False),
        ("2001:db8::/32", "2001:db8::1", True),
        ("203.0.113.9", "203.0.113.9", True),
    ],
)
def test_an_expected_host_covers_whole_labels(pattern: str, host: str, covered: bool) -> None:
    assert matches(pattern, host) is covered


def test_the_first_entry_that_covers_a_name_on_the_port_is_taken() -> None:
    only_tls, anywhere = ExpectedHost("api.test", [443], "docs"), ExpectedHost("*.test")
    expectations = Expectations("e", [only_tls, anywhere])
    assert expected(expectations, ["x.example", "api.test"], 443) is only_tls
    assert expected(expectations, ["api.test"], 80) is anywhere
    assert expected(expectations, ["api.test"], None) is only_tls
    assert expected(expectations, ["x.example"], 443) is None
    assert expected(Expectations("e"), ["api.test"], 443) is None


@pytest.mark.parametrize(
    ("name", "local"),
    [
        ("localhost", True),
        ("printer", True),
        ("_services._dns-sd._udp.local", True),
        ("db.internal", True),
        ("router.home.arpa", True),
        ("4.3.2.1.in-addr.arpa", True),
        ("b._dns-sd._udp.0.2.0.10.in-addr.arpa", True),
        ("1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", True),
        ("secret-data.113.0.203.in-addr.arpa", False),
        ("9999.113.0.203.in-addr.arpa", False),
        ("localhost.evil.test", False),
        ("127.0.0.1.evil.test", False),
        ("10.0.0.5.evil.test", False),
        ("xn--localhost-7sb.test", False),
        ("local.evil.test", False),
        ("evil-local", True),
        ("evillocal.test", False),
    ],
)
def test_a_name_is_local_by_its_last_labels_only(name: str, local: bool) -> None:
    assert is_local_name(name) is local


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("[2001:DB8::1]", "2001:db8::1"),
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("203.0.29025", "203.0.113.97"),
        ("1.2.3.4.5", None),
        ("256.1.1.1", None),
        ("127.0.0.08", None),
        ("1.2.3.999", None),
        ("4294967296", None),
        ("127.0.0.1.evil.test", None),
        ("localhost", None),
        ("", None),
        (".", None),
        ("1..2", None),
    ],
)
def test_an_address_literal_is_known_in_every_form_that_programs_take(text: str, address: str | None) -> None:
    assert literal_address(text) == address


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("exfil.test:443", ("exfil.test", 443)),
        ("exfil.test", ("exfil.test", None)),
        ("[2001:db8::1]:443", ("2001:db8::1", 443)),
        ("[2001:db8::1]", ("2001:db8::1", None)),
        ("2001:db8::1", ("2001:db8::1", None)),
        ("exfil.test:https", ("exfil.test", None)),
        ("exfil.test:٤٤٣", ("exfil.test", None)),
        ("exfil.test:999999", ("exfil.test", None)),
        ("", ("", None)),
    ],
)
def test_host_and_port_are_split_where_the_port_begins(text: str, parts: tuple[str, int | None]) -> None:
    assert host_and_port(text) == parts
