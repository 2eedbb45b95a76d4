"""Ways to deny a cell the network, each by the mechanism a real sandbox would use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from controls.recorder.confine import POLICIES
from controls.recorder.errors import RecorderError
from controls.recorder.packetlog import log_chain
from mcpdetect.model.probe_acts import ProbeActs

__all__ = ["DENIALS", "TABLE", "Denial", "counters", "deny"]

TABLE = "inet mcpdetect"
"""The nftables table that denies; its counters are firewall evidence."""

_RULES = """table inet mcpdetect {{
{log}  chain deny {{
    type filter hook {hook} priority 0; policy accept;
    {rules}
  }}
}}
"""
# Neighbour discovery must live, as ARP does: denying it would be another denial, "link-down". The kernel's own
# multicast listener reports are nobody's attempt and must not move the counters.
_ND = "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, mld-listener-report, mld2-listener-report } accept"


@dataclass(frozen=True, slots=True)
class Denial:
    """One way of denying the network.

    Attributes:
        side: whose namespace it is set up in, ``server`` or ``internet``.
        hook: the nftables hook, ``""`` where no firewall is used.
        rules: the nftables rules.
        routes: what replaces the default routes: a route type, ``delete``, or ``""``.
        link: the internet's end of the wire is set down.
        dns: the name server's behaviour, where it is the denial.
        only: what the rules deny where they do not deny everything: ``tcp``, ``udp`` or ``port``.
        gone: the server's end of the wire is taken away; ``lo`` alone stays.
        confine: the policy on the target's system calls (``controls.recorder.confine``).
    """

    side: str = "server"
    hook: str = ""
    rules: str = ""
    routes: str = ""
    link: bool = False
    dns: str = ""
    only: str = ""
    gone: bool = False
    confine: str = ""

    @property
    def wired(self) -> bool:
        """Whether packets still cross the wire, so that one from the gateway proves the capture."""
        return not self.link and not self.gone


def _output(verdict: str) -> Denial:
    return Denial("server", "output", f'{_ND}; oifname "eth0" counter {verdict}')


def _gateway(verdict: str, *, names: bool = False) -> Denial:
    allow = "udp dport 53 accept; tcp dport 53 accept; " if names else ""
    return Denial("internet", "input", f'{_ND}; {allow}iifname "wire" counter {verdict}')


def _gateway_only(what: str, match: str) -> Denial:
    return Denial("internet", "input", f'{_ND}; iifname "wire" {match} counter drop', only=what)


DENIALS: dict[str, Denial] = {
    "output-drop": _output("drop"),
    "output-reject": _output("reject"),
    "output-reject-admin": _output("reject with icmpx admin-prohibited"),
    "output-reject-host": _output("reject with icmpx host-unreachable"),
    "output-reject-no-route": _output("reject with icmpx no-route"),
    "output-drop-tcp": Denial("server", "output", f'{_ND}; oifname "eth0" meta l4proto tcp counter drop', only="tcp"),
    "output-reject-reset": Denial(
        "server",
        "output",
        f'{_ND}; oifname "eth0" meta l4proto tcp counter reject with tcp reset; oifname "eth0" counter drop',
    ),
    "input-drop": Denial("server", "input", f'{_ND}; iifname "eth0" counter drop'),
    "gateway-drop": _gateway("drop"),
    "gateway-drop-dns-open": _gateway("drop", names=True),
    "gateway-reject": _gateway("reject"),
    "gateway-reject-admin": _gateway("reject with icmpx admin-prohibited", names=True),
    "gateway-reject-host": _gateway("reject with icmpx host-unreachable", names=True),
    "gateway-reject-no-route": _gateway("reject with icmpx no-route", names=True),
    "gateway-drop-tcp": _gateway_only("tcp", "meta l4proto tcp"),
    "gateway-drop-udp": _gateway_only("udp", "meta l4proto udp"),
    "gateway-drop-port": _gateway_only("port", "meta l4proto tcp ct original proto-dst { 80, 443 }"),
    "gateway-reject-reset": Denial(
        "internet",
        "input",
        f'{_ND}; udp dport 53 accept; iifname "wire" meta l4proto tcp counter reject with tcp reset; '
        'iifname "wire" counter drop',
    ),
    "no-route": Denial(routes="delete"),
    "unreachable": Denial(routes="unreachable"),
    "prohibit": Denial(routes="prohibit"),
    "blackhole": Denial(routes="blackhole"),
    "link-down": Denial(side="internet", link=True),
    "no-interface": Denial(gone=True),
    "dns-nxdomain": Denial(dns="nxdomain"),
    "dns-servfail": Denial(dns="servfail"),
    "dns-refused": Denial(dns="refused"),
    "dns-silent": Denial(dns="silent"),
    **{policy: Denial(confine=policy) for policy in POLICIES},
}
"""Name of a denial, as in ``run.denial`` of a manifest, to what is set up."""


def _probe_rules(denial: Denial, probes: Iterable[ProbeActs], broadcast: str) -> Iterator[str]:
    """Yield rules that treat probes as the denial treats everybody, and count them apart under their own prefix.

    The gateway turns TCP to its own server before its input hook, so there the address dialled is the connection's
    first one. Where answers are denied, those to the probe are its packets.
    """
    if denial.only == "port":
        return
    verdict = denial.rules.rpartition("counter ")[2]
    # iifname "wire" meta l4proto tcp counter reject with tcp reset
    tcp = "reject with tcp reset" if "with tcp reset" in denial.rules else verdict
    far, end = ("saddr", "sport") if denial.hook == "input" and denial.side == "server" else ("daddr", "dport")
    for acts in probes:
        say = f'counter log prefix "{acts.text}"'
        for family, address in (("ip", acts.address4), ("ip6", acts.address6)) if denial.only != "udp" else ():
            if denial.side == "internet":
                to = f"meta l4proto tcp ct original {family} daddr {address} ct original proto-dst {acts.port}"
            else:
                to = f"{family} {far} {address} tcp {end} {acts.port}"
            yield f"{to} {say} {tcp}"
        if denial.only == "tcp":
            continue
        yield f"ip {far} {acts.address4} udp {end} {acts.port} {say} {verdict}"
        if denial.hook == "input":
            # The recorder's own, from the gateway to everybody on the wire: it comes back to the gateway as well.
            yield f"ip daddr {broadcast} udp dport {acts.port} {say} {verdict}"
        if denial.side == "server" or "udp dport 53 accept" not in denial.rules:
            # The nonce is the name's first label: 16 bytes behind the headers of UDP and DNS and the label's length.
            # The recorder asks the name server too, from the gateway itself, and must get through.
            wire = 'iifname "wire" ' if denial.side == "internet" else ""
            yield f"{wire}udp {end} 53 @th,168,128 0x{acts.nonce.encode().hex()} {say} {verdict}"


def deny(
    name: str,
    enter: dict[str, Callable[..., str]],
    probes: Iterable[ProbeActs] = (),
    *,
    broadcast: str = "",
    away: int | None = None,
    log: bool = False,
) -> None:
    """Set a denial up; a policy on system calls is the target's own affair and set up where it starts.

    Args:
        name: its name in ``DENIALS``.
        enter: ``server`` and ``internet`` to a function that runs a command in that namespace.
        probes: probes of this run, which the firewall counts apart.
        broadcast: the address at which the recorder's own part of a probe reaches everybody on the wire.
        away: process id in whose network namespace an interface that is taken away ends.
        log: the rules log what they deny to who listens (``controls.recorder.packetlog``).

    Raises:
        RecorderError: there is no such denial, or a tool failed.
    """
    if name not in DENIALS:
        raise RecorderError(f"no denial {name!r}; there are {', '.join(sorted(DENIALS))}")
    denial = DENIALS[name]
    inside = enter[denial.side]
    if denial.hook:
        rules = [*_probe_rules(denial, probes, broadcast), *denial.rules.split("; ")]
        before = log_chain(rules, denial.hook, gateway=denial.side == "internet") if log else ""
        inside("nft", "-f", "-", stdin=_RULES.format(log=before, hook=denial.hook, rules="\n    ".join(rules)))
    for family in ("-4", "-6") if denial.routes else ():
        inside("ip", family, "route", "flush", "default")
        if denial.routes != "delete":
            inside("ip", family, "route", "add", denial.routes, "default")
    if denial.link:
        inside("ip", "link", "set", "wire", "down")
    if denial.gone:
        inside("ip", "link", "set", "eth0", "netns", str(away))


def counters(name: str, enter: dict[str, Callable[..., str]]) -> str | None:
    """Return the firewall's own table with its counters, None where the denial uses no firewall."""
    denial = DENIALS[name]
    if not denial.hook:
        return None
    return enter[denial.side]("nft", "list", "table", *TABLE.split())
