"""Signs of a policy on system calls."""

from __future__ import annotations

from hand_sources import where
from made_events import S, connect

from mcpdetect.correlate import policies
from mcpdetect.correlate.policies import Policies
from mcpdetect.model.event import Event
from mcpdetect.model.net import SocketOpen
from mcpdetect.model.trace import Run


def made(line: int, family: str, kind: str, error: str | None = None) -> SocketOpen:
    return SocketOpen(where(line), S, "socket", None if error else 3, error, family=family, type=kind)


def met(*events: Event) -> Policies:
    found = Policies(Run())
    for event in events:
        assert event.kind in Policies.kinds
        found.on_event(event)
    return found


def test_ip_sockets_refused_for_want_of_permission_are_kept() -> None:
    found = met(
        made(1, "inet", "raw", "EPERM"),  # raw sockets need a right that programs rarely have (raw(7))
        made(2, "inet", "stream", "EPERM"),
        made(3, "inet6", "dgram", "EACCES"),
        made(4, "inet6", "stream", "EAFNOSUPPORT"),
        made(5, "netlink", "raw", "EPERM"),
        made(6, "inet", "stream"),
        made(7, "inet", "stream", "EMFILE"),
    )
    assert [item.where for item in found.refused_sockets] == [where(2), where(3)]


def test_an_unsupported_family_is_a_policy_where_it_is_ipv4() -> None:
    six = made(1, "inet6", "stream", "EAFNOSUPPORT")
    assert met(six).refused_sockets == []
    four = made(2, "inet", "dgram", "EAFNOSUPPORT")
    assert [item.where for item in met(six, four).refused_sockets] == [where(1), where(2)]


def test_what_is_kept_is_bounded() -> None:
    opens = [
        made(line, family, "stream", error)
        for line in range(1, 101)
        for family, error in (("inet", "EPERM"), ("inet", "EAFNOSUPPORT"))
    ]
    assert len(met(*opens).refused_sockets) == policies.MAX_REFUSED
    assert policies.MAX_ROUTED == 50_000


def test_a_datagram_socket_that_connects_shows_a_route() -> None:
    found = met(
        connect(1, "203.0.113.7", transport="udp"),
        connect(2, "203.0.113.8", transport="udp", error="EACCES"),
        connect(3, "203.0.113.9", transport="tcp"),
    )
    assert found.routed == {"203.0.113.7"}


def test_a_socket_that_is_open_to_all_and_refused_shows_that_the_call_is() -> None:
    def unix(line: int, path: str, error: str | None) -> Event:
        return connect(line, None, error, family="unix", path=path, transport="unix")

    assert met(unix(1, "/var/run/nscd/socket", "ENOENT")).calls_refused is None
    assert met(unix(1, "/run/docker.sock", "EACCES")).calls_refused is None
    assert met(unix(1, "/var/run/nscd/socket", "EACCES"), unix(2, "/run/nscd/socket", "EPERM")).calls_refused == where(
        1
    )
    assert met(unix(2, "/run/nscd/socket", "EPERM")).calls_refused == where(2)
