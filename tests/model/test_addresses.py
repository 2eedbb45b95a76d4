"""One spelling for every address, and where it leads."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpdetect.model.addresses import canonical, endpoint, is_remote, scope_of


@pytest.mark.parametrize(
    ("written", "canonical_form"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("::FFFF:cb00:7107", "203.0.113.7"),
        ("64:ff9b::cb00:7107", "203.0.113.7"),
        ("64:ff9b::7f00:1", "64:ff9b::7f00:1"),
        ("64:ff9b::", "64:ff9b::"),
        ("64:ff9b:1::cb00:7107", "64:ff9b:1::cb00:7107"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("::", "::"),
    ],
)
def test_an_address_has_one_spelling(written: str, canonical_form: str) -> None:
    assert canonical(written) == canonical_form


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "1.2.3.4:80", "[::1]", "203.0.113.007", "1.2.3.4/24", "%eth0"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        canonical(text)


@pytest.mark.parametrize(
    ("address", "scope"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.0.9", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("169.254.169.254", "metadata"),
        ("::ffff:169.254.169.254", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("169.254.1.1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("224.0.0.251", "multicast"),
        ("ff02::fb", "multicast"),
        ("255.255.255.255", "multicast"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "private"),
        ("fd12::1", "private"),
        ("172.32.0.1", "public"),
        ("203.0.113.7", "public"),
        ("198.18.0.1", "public"),
        ("2001:db8::1", "public"),
        ("64:ff9b::7f00:1", "public"),
    ],
)
def test_an_address_leads_to_one_place(address: str, scope: str) -> None:
    assert scope_of(address) == scope
    assert is_remote(address) is (scope not in ("loopback", "unspecified"))


@given(st.ip_addresses())
def test_canonical_is_idempotent_and_every_address_leads_somewhere(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    once = canonical(str(address))
    assert canonical(once) == once
    assert scope_of(str(address)) == scope_of(once)


@pytest.mark.parametrize(
    ("address", "port", "text"),
    [
        ("203.0.113.7", 443, "203.0.113.7:443"),
        ("2001:db8::1", 443, "[2001:db8::1]:443"),
        ("2001:db8::1", None, "2001:db8::1"),
        ("203.0.113.7", 0, "203.0.113.7:0"),
    ],
)
def test_an_endpoint_is_written_as_people_do(address: str, port: int | None, text: str) -> None:
    assert endpoint(address, port) == text
