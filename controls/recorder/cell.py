"""A cell: a server namespace and an internet namespace, joined by one wire, with no way out of either.

The namespaces have no names: each lives as long as its keeper process, and the kernel kills the keepers with the
recorder. So nothing of a cell can stay behind, however the recorder ends.
"""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from controls.recorder.background import Background, await_line, wait_until
from controls.recorder.denial import DENIALS, counters, deny
from controls.recorder.errors import RecorderError
from controls.recorder.internet import DNS_MODES, DNS_PORT, SINK_PORT, Settings
from controls.recorder.internet.authority import authority_file
from controls.recorder.internet.process import start
from controls.recorder.packetlog import PacketLog
from controls.recorder.probes import Probes, cache_folder
from controls.recorder.tools import run
from mcpdetect.model.probe_acts import Phase
from mcpdetect.model.vocabulary import Channel

__all__ = ["BROADCAST4", "CLOSED_PORT", "GATEWAY4", "GATEWAY6", "SERVER4", "SERVER6", "Cell"]

SERVER4, GATEWAY4 = "10.200.0.2", "10.200.0.1"
SERVER6, GATEWAY6 = "fd00:200::2", "fd00:200::1"
BROADCAST4 = "10.200.0.255"
CLOSED_PORT = 9
"""The one port on which nothing answers: a connect there is refused by a reset."""

# UDP keeps the address it was sent to (tproxy rewrites nothing); of TCP the kernel tells it to who asks.
_SINKS = f"""table inet sinks {{
  chain datagrams {{
    type filter hook prerouting priority mangle; policy accept;
    iifname "wire" fib daddr type {{ multicast, broadcast }} accept
    iifname "wire" ip daddr {GATEWAY4} udp dport 53 accept
    iifname "wire" ip6 daddr {GATEWAY6} udp dport 53 accept
    iifname "wire" udp dport != {CLOSED_PORT} tproxy to :{SINK_PORT} accept
  }}
  chain arrive {{
    type nat hook prerouting priority -100; policy accept;
    iifname "wire" ip daddr {GATEWAY4} tcp dport 53 accept
    iifname "wire" ip6 daddr {GATEWAY6} tcp dport 53 accept
    iifname "wire" tcp dport != {CLOSED_PORT} redirect to :{SINK_PORT}
  }}
}}
"""
# Quiet and predictable interfaces: no duplicate address detection, no router solicitations, and the kernel's multicast
# listener reports at once instead of a second later, in the middle of a run.
_SETTINGS = (
    "net/ipv6/conf/all/accept_dad=0",
    "net/ipv6/conf/default/accept_dad=0",
    "net/ipv6/conf/all/router_solicitations=0",
    "net/ipv6/conf/default/router_solicitations=0",
    "net/ipv6/conf/default/accept_ra=0",
    "net/ipv6/conf/default/mldv1_unsolicited_report_interval=1",
    "net/ipv6/conf/default/mldv2_unsolicited_report_interval=1",
    "net/ipv4/conf/all/rp_filter=0",
    "net/ipv4/conf/default/rp_filter=0",
    "net/ipv4/ping_group_range=0 2147483647",
)


class Cell:
    """The two namespaces, the fake internet and the watchers on the wire. Use it as a context manager.

    Args:
        folder: where the watchers write ``capture.pcap``, ``dnsmasq.log``, what the tools said, and the fake internet
            its journal ``internet.jsonl``.
        denial: a name in ``DENIALS``, None for an open network.
        ipv6: whether the server has IPv6 addresses and routes.
        dns: how names are answered (``DNS_MODES``).
        names: what some names answer otherwise (``internet.names.load_names``).
        capture: whether tcpdump runs.
        log: whether a denying firewall logs the packets that it denies.
        probes: the run's probes, None for none.
        wire: two interfaces that are joined already: they become the wire's ends in server and internet namespace.
    """

    def __init__(
        self,
        folder: Path,
        *,
        denial: str | None = None,
        ipv6: bool = True,
        dns: str = "answer",
        names: Mapping[str, Any] | None = None,
        capture: bool = True,
        log: bool = False,
        probes: Probes | None = None,
        wire: tuple[str, str] | None = None,
    ) -> None:
        if denial is not None and denial not in DENIALS:
            raise RecorderError(f"no denial {denial!r}; there are {', '.join(sorted(DENIALS))}")
        if dns not in DNS_MODES:
            raise RecorderError(f"no dns mode {dns!r}; there are {', '.join(DNS_MODES)}")
        self._folder = folder
        self._denial = denial
        self._ipv6 = ipv6
        self._dns = (DENIALS[denial].dns if denial else "") or dns
        self._table = dict(names or {})
        self._capture = capture
        self._log = log
        self._probes = probes
        self._wire = wire
        self._helpers: list[Background] = []
        self._tcpdump: Background | None = None
        self._dnsmasq: Background | None = None
        self._outside: Background | None = None
        self._ulogd: Background | None = None
        self._enter: dict[str, Callable[..., str]] = {}
        self.keeper = 0
        """Process id that holds the server namespace."""

    def __enter__(self) -> Cell:
        with contextlib.ExitStack() as undo:
            undo.callback(self._tear_down)
            self._build()
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tear_down()

    def _start(self, helper: Background) -> Background:
        self._helpers.append(helper)
        return helper

    def _namespace(self, name: str) -> int:
        keeper = self._start(Background(f"{name} namespace", ["unshare", "--net", "--", "sleep", "infinity"]))
        mine = Path("/proc/self/ns/net").readlink()
        link = Path(f"/proc/{keeper.pid}/ns/net")

        def apart() -> bool:
            if keeper.process.poll() is not None:
                raise RecorderError(f"{name} namespace: unshare ended; are namespaces allowed here?")
            return link.readlink() != mine

        wait_until(apart, f"{name} namespace")

        def enter(*argv: str, stdin: str | None = None) -> str:
            return run("nsenter", f"--net=/proc/{keeper.pid}/ns/net", "--", *argv, stdin=stdin)

        self._enter[name] = enter
        settings = [
            f"echo '{value}' > /proc/sys/{path}" for path, _, value in (one.partition("=") for one in _SETTINGS)
        ]
        self._script(name, *settings, "ip link set lo up")
        return keeper.pid

    def _script(self, name: str, *commands: str) -> None:
        """Run fixed commands in a namespace with one shell, which is faster than one each; the first failure counts."""
        self._enter[name]("sh", "-ec", "\n".join(commands))

    def _build(self) -> None:
        self.keeper = self._namespace("server")
        internet = self._namespace("internet")
        if self._wire is None:
            link = [f"ip link add eth0 type veth peer name wire netns {internet}"]
        else:
            link = [f"ip link set {self._wire[0]} name eth0"]
            for name, namespace in zip(self._wire, (self.keeper, internet), strict=True):
                run("ip", "link", "set", name, "netns", str(namespace))
            self._script("internet", f"ip link set {self._wire[1]} name wire")
        if not self._ipv6:
            link.append("echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6")
        self._script("server", *link)
        self._script(
            "internet",
            f"ip addr add {GATEWAY4}/24 dev wire",
            f"ip addr add {GATEWAY6}/64 dev wire nodad",
            "ip link set wire up",
            # Every address is local to the internet namespace (AnyIP): whatever is dialled, somebody is there.
            "ip route add local 0.0.0.0/0 dev lo table main",
            "ip -6 route add local ::/0 dev lo table main",
        )
        routes = [f"ip addr add {SERVER4}/24 dev eth0"]
        if self._ipv6:
            routes.append(f"ip addr add {SERVER6}/64 dev eth0 nodad")
        routes += ["ip link set eth0 up", f"ip route add default via {GATEWAY4}"]
        if self._ipv6:
            routes.append(f"ip -6 route add default via {GATEWAY6}")
        self._script("server", *routes)
        self._enter["internet"]("nft", "-f", "-", stdin=_SINKS)
        self._sinks(internet)
        self._names(internet)
        if self._capture:
            self._watch()
        if self._denial and not DENIALS[self._denial].dns:
            acts = self._probes.acts.values() if self._probes is not None else ()
            # Cards have their link set from outside, by who gave them.
            if self._wire is None or not DENIALS[self._denial].link:
                log = self._firewall_log(DENIALS[self._denial].side, internet)
                deny(self._denial, self._enter, acts, broadcast=BROADCAST4, away=internet, log=log)

    def _firewall_log(self, side: str, internet: int) -> bool:
        """Start the log of a denying firewall where one is wanted; return whether its rules shall log."""
        if not self._log or self._denial is None or not DENIALS[self._denial].hook:
            return False
        self._ulogd = self._start(PacketLog(self._folder, self.keeper if side == "server" else internet).helper)
        return True

    def _sinks(self, internet: int) -> None:
        journal = self._folder / "internet.jsonl"
        settings = Settings(self._dns, str(journal), str(authority_file(cache_folder())), self._table)
        self._outside = self._start(start(settings, internet, self._folder / "internet.txt"))

    def _names(self, internet: int) -> None:
        log = self._folder / "dnsmasq.log"
        self._dnsmasq = self._start(
            Background(
                "dnsmasq",
                [
                    "dnsmasq",
                    "--keep-in-foreground",
                    "--conf-file=/dev/null",
                    "--pid-file=",
                    # A change of group would make the kernel forget that dnsmasq shall die with the recorder.
                    "--user=root",
                    "--group=root",
                    "--no-resolv",
                    "--no-hosts",
                    "--bind-interfaces",
                    "--except-interface=lo",
                    f"--listen-address={GATEWAY4}",
                    f"--listen-address={GATEWAY6}",
                    f"--server=127.0.0.1#{DNS_PORT}",
                    *self.dns_options(),
                    f"--log-facility={log}",
                ],
                netns=internet,
            )
        )
        wait_until(lambda: log.exists() and b": started, version" in log.read_bytes(), "dnsmasq")

    @staticmethod
    def dns_options() -> list[str]:
        """Return the options that shape the name server's log."""
        return ["--log-queries=extra"]

    @staticmethod
    def capture_options(denial: str | None = None) -> list[str]:
        """Return tcpdump's options: written packet by packet, whole packets, no names.

        Args:
            denial: the run's denial; where it leaves no interface but ``lo``, every interface is watched.
        """
        interface = "any" if denial is not None and DENIALS[denial].gone else "eth0"
        # Whole packets at once take a slot of the whole length each: the usual 2 MB hold 8, too few on a busy machine.
        return ["-i", interface, "--immediate-mode", "-U", "-n", "-s", "262144", "-B", "32768"]

    def _watch(self) -> None:
        said = self._folder / "tcpdump.txt"
        to = ("-w", str(self._folder / "capture.pcap"))
        with said.open("wb") as stderr:
            self._tcpdump = self._start(
                Background(
                    "tcpdump",
                    ["tcpdump", *self.capture_options(self._denial), "-Z", "root", *to],
                    netns=self.keeper,
                    stderr=stderr,
                )
            )
        wait_until(lambda: b"listening on " in said.read_bytes(), "tcpdump")

    def probe(self, phase: Phase) -> None:
        """Do the recorder's own part of a probe, and note which channels must show it.

        Under a denial the name server is asked from the outside; a broadcast from the gateway crosses the wire in any
        case but a dead link.
        """
        if self._probes is None:
            return
        denial = DENIALS[self._denial] if self._denial else None
        server = GATEWAY4 if denial is not None else ""
        if self._outside is not None and self._outside.process.stdin and self._outside.process.stdout:
            acts = self._probes.acts[phase]
            order = json.dumps([acts.name, server, BROADCAST4, acts.port, acts.text])
            self._outside.process.stdin.write(order.encode() + b"\n")
            self._outside.process.stdin.flush()
            await_line(self._outside.process.stdout, b"probed\n", "fake internet")
        channels: list[Channel] = ["syscalls", "dns"]
        if self._capture and (denial is None or denial.wired):
            channels.append("packets")
        if denial is not None and denial.hook and denial.only != "port":
            channels.append("firewall")
        self._probes.reached[phase] = channels

    def settle(self) -> None:
        """Wait until the capture has not grown for 150 ms (at most 3 s): late packets belong to the run."""
        capture = self._folder / "capture.pcap"
        if self._tcpdump is None:
            return
        quiet = 0
        size = -1

        def still() -> bool:
            nonlocal quiet, size
            now = capture.stat().st_size
            quiet = quiet + 1 if now == size else 0
            size = now
            return quiet >= 15

        with contextlib.suppress(RecorderError):
            wait_until(still, "capture", 3.0)

    def close_watchers(self) -> None:
        """Stop tcpdump, dnsmasq, the fake internet and ulogd so that all write their closing lines."""
        if self._tcpdump is not None:
            self._tcpdump.stop(signal.SIGINT)
        if self._dnsmasq is not None:
            self._dnsmasq.stop(signal.SIGTERM)
        if self._outside is not None:
            self._outside.stop(signal.SIGTERM)
        if self._ulogd is not None:
            self._ulogd.stop(signal.SIGTERM)

    def counters(self) -> str | None:
        """Return the denying firewall's table with its counters, None without one."""
        return counters(self._denial, self._enter) if self._denial else None

    def _tear_down(self) -> None:
        while self._helpers:
            self._helpers.pop().stop()
