"""The firewall's log of a cell: the packets that denying rules meet, written down by ulogd in the kernel's form.

A ``log`` statement writes to the kernel's own log, which keeps silent about namespaces and is the whole machine's. One
with a group hands the packet to whoever listens for that group in the same namespace, which is ulogd here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from controls.recorder.background import Background, wait_until
from controls.recorder.errors import RecorderError

__all__ = ["LOG", "NAME", "PacketLog", "log_chain", "log_losses", "logs"]

NAME = "firewall.log"
"""Name of the log in a bundle."""
LOG = "ulogd"
"""The program that writes it."""
_GROUP = 5
# Where ulogd's plug-ins lie: of Debian, by architecture, and of others.
_PLUGINS = ("/usr/lib/x86_64-linux-gnu/ulogd", "/usr/lib/aarch64-linux-gnu/ulogd", "/usr/lib/ulogd")
_STACK = ("inppkt_NFLOG", "raw2packet_BASE", "filter_IFINDEX", "filter_IP2STR", "filter_PRINTPKT", "output_LOGEMU")
_SETTINGS = """[global]
logfile="{said}"
loglevel=3
{plugins}
stack=log:NFLOG,base:BASE,ifi:IFINDEX,ip:IP2STR,print:PRINTPKT,emu:LOGEMU
[log]
group={group}
[emu]
file="{log}"
sync=1
"""
# The lines name no host of this machine, and time is UTC as in every log of a cell.
_RUN = 'echo cell >/proc/sys/kernel/hostname; exec ulogd -c "$1"'
# iifname "wire" meta l4proto tcp counter log prefix "mcpdetect-probe before 0123456789abcdef" drop
_COUNTING = re.compile(r'(.*?)counter (?:log prefix "([^"]*)" )?(drop|reject)')
# meta l4proto tcp ct original ip daddr 198.18.0.1 ct original proto-dst 20000
_ORIGINAL = re.compile(r"meta l4proto tcp (?:ct original (ip6? daddr \S+) )?ct original proto-dst ")
_CHAIN = """  chain noted {{
    type filter hook {hook}; policy accept;
    {rules}
  }}
"""
# Mon Nov 30 23:22:20 2026 <7> ulogd_inppkt_NFLOG.c:593 We are losing events. Please, consider using the clauses ...
_LOSING = re.compile(rb"We are losing events")


def log_chain(rules: Iterable[str], hook: str, *, gateway: bool) -> str:
    """Return a chain that logs what rules count and deny, before they do.

    It is a chain of its own: the denying one stays what it is without a log.

    Args:
        rules: the rules of the denying chain.
        hook: the hook of that chain, which is in the log too.
        gateway: it is the gateway's, which turns TCP to its own server before its input hook: what was dialled is known
            before that alone.
    """
    made = []
    for rule in rules:
        if found := _COUNTING.match(rule):
            # Behind "ulogd:" stands what an own prefix would say; a probe's is its text alone.
            said = found[2] or f"{hook} {found[3]}"
            which = _ORIGINAL.sub(lambda one: f"{one[1] or ''} tcp dport ".lstrip(), found[1])
            made.append(f'{which}log prefix "{LOG}: {said} " group {_GROUP} queue-threshold 1 accept')
        else:
            made.append(rule)
    before = "prerouting priority raw" if gateway else f"{hook} priority -1"
    return _CHAIN.format(hook=before, rules="\n    ".join(made))


class PacketLog:
    """ulogd in a cell's namespace.

    Args:
        folder: where ``firewall.log`` goes, with ulogd's own words in ``ulogd.txt``.
        netns: process id that holds the namespace whose rules log.
    """

    def __init__(self, folder: Path, netns: int) -> None:
        plugins = next((place for place in map(Path, _PLUGINS) if place.is_dir()), None)
        if plugins is None:
            raise RecorderError("the plug-ins of ulogd are not where Debian puts them (apt-get install ulogd2)")
        said, settings = folder / "ulogd.txt", folder / "ulogd.conf"
        settings.write_text(
            _SETTINGS.format(
                said=said,
                log=folder / NAME,
                group=_GROUP,
                plugins="\n".join(f'plugin="{plugins}/ulogd_{name}.so"' for name in _STACK),
            )
        )
        self.helper = Background(LOG, ["unshare", "--uts", "--", "sh", "-c", _RUN, "sh", str(settings)], netns=netns)

        def listens() -> bool:
            words = said.read_text(errors="backslashreplace") if said.exists() else ""
            if self.helper.process.poll() is not None:
                raise RecorderError(f"ulogd ended: {words.strip()[-500:]}")
            return "entering main loop" in words

        try:
            wait_until(listens, LOG)
        except RecorderError:
            self.helper.stop()
            raise


def logs(folder: Path) -> bool:
    """Return whether a folder holds a log with at least a line: an empty one is no evidence of anything."""
    log = folder / NAME
    return log.exists() and log.stat().st_size > 0


def log_losses(said: bytes) -> tuple[int, bool]:
    """Return how often ulogd said that it lost packets, and whether it ended as it was told to.

    Args:
        said: its own words.
    """
    return len(_LOSING.findall(said)), b"Terminal signal received, exiting" in said
