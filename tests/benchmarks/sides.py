"""One side of a comparison in a process of its own: ``python sides.py NAME FILE...``.

It prints one JSON object: the processor seconds of the work itself (imports and start-up left out), its peak of memory
in MB, and how much it found. Nothing of mcpdetect is imported by the sides that belong to others: they run in an
environment of their own.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["RELEVANT", "SIDES", "peak_memory"]

RELEVANT = frozenset(
    {
        "process.start",
        "process.exec_failed",
        "process.exit",
        "file.open",
        "socket.open",
        "socket.connect",
        "socket.listen",
        "kernel.notable",
    }
)
"""Kinds behind which stand the calls that matter for security, without reads and writes."""

Side = Callable[[list[str]], Callable[[], int]]


def peak_memory() -> float:
    """Return the most memory this process ever had, in MB; getrusage would count what its parent had too."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def _count(events: Iterable[object]) -> int:
    return sum(1 for _ in events)


def _strace(kinds: frozenset[str] | None) -> Side:
    def prepare(files: list[str]) -> Callable[[], int]:
        from mcpdetect.ingest.strace import StraceFiles, StraceLog

        if len(files) > 1:
            return lambda: _count(StraceFiles([Path(name) for name in files]).events(kinds))
        return lambda: _count(StraceLog(Path(files[0])).events(kinds))

    return prepare


def _asked() -> frozenset[str]:
    """Return the kinds that all installed checks, and the facts they rest on, ask a run for."""
    from mcpdetect import check
    from mcpdetect.model.event import Event
    from mcpdetect.model.observation import Observation
    from mcpdetect.model.trace import Run

    class Nothing:
        run = Run()
        asked: frozenset[str] = frozenset()

        def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
            self.asked = wanted or frozenset()
            return iter(())

        def observations(self) -> list[Observation]:
            return []

    nothing = Nothing()
    check(nothing)
    return nothing.asked


def _strace_asked(files: list[str]) -> Callable[[], int]:
    return _strace(_asked())(files)


def _strace_set(files: list[str]) -> Callable[[], int]:
    begin = Path(files[0])
    return _strace(RELEVANT)([str(path) for path in sorted(begin.parent.glob(f"{begin.name}.*"))])


def _packets(files: list[str]) -> Callable[[], int]:
    from mcpdetect.ingest.pcap import PacketCapture

    return lambda: _count(PacketCapture(Path(files[0])).events())


def _both(files: list[str]) -> Callable[[], int]:
    """Read a log and a capture for what the checks ask, and do nothing with it."""
    from mcpdetect.ingest.pcap import PacketCapture
    from mcpdetect.ingest.strace import StraceLog

    kinds = _asked()
    return lambda: _count(StraceLog(Path(files[0])).events(kinds)) + _count(PacketCapture(Path(files[1])).events(kinds))


def _check(files: list[str]) -> Callable[[], int]:
    from mcpdetect import check, open_evidence_files

    return lambda: len(check(open_evidence_files(strace=[files[0]], pcap=[files[1]])).checks)


# What anyone writes first: a pattern for a line, one for each call, a dictionary for halves.
_LINE = re.compile(r"(\d+) +(\d+\.\d+) (.*)")
_RESUMED = re.compile(r"<\.\.\. (\w+) resumed>(.*)")
_OPENAT = re.compile(r'openat\(.*?"(.*?)".*\) += (-?\d+)')
_EXECVE = re.compile(r'execve\("(.*?)", \[(.*?)\].*\) += (-?\d+)')
_CONNECT = re.compile(r"connect\((\d+).*?sa_family=(\w+).*\) += (-?\d+)")


# The same for the calls of files that the checks ask about as well.
_AT = r"\(.*?\"(.*?)\".*\) += (-?\d+)"
_TRANSFER = r"\((\d+).*?\"(.*)\".*\) += (-?\d+)"
_MORE = [
    *((name, re.compile(name + _AT)) for name in ("newfstatat", "statx", "readlinkat", "access", "unlink", "mkdir")),
    *((name, re.compile(name + _TRANSFER)) for name in ("read", "write", "pread64", "pwrite64", "sendto", "recvfrom")),
    ("mmap", re.compile(r"mmap\(.*?, (\d+), .*, (\d+).*\) += (0x\w+)")),
    ("getdents64", re.compile(r"getdents64\((\d+).*\) += (-?\d+)")),
]


def _naive_strace(files: list[str]) -> Callable[[], int]:
    return _naive(files, [("openat", _OPENAT), ("execve", _EXECVE), ("connect", _CONNECT)])


def _naive_strace_all(files: list[str]) -> Callable[[], int]:
    return _naive(files, [("openat", _OPENAT), ("execve", _EXECVE), ("connect", _CONNECT), *_MORE])


def _naive(files: list[str], patterns: list[tuple[str, re.Pattern[str]]]) -> Callable[[], int]:
    def work() -> int:
        found = []
        pending: dict[str, str] = {}
        with open(files[0], errors="replace") as lines:  # noqa: PTH123
            for line in lines:
                head = _LINE.match(line)
                if head is None:
                    continue
                pid, moment, rest = head.groups()
                if rest.endswith("<unfinished ...>"):
                    pending[pid] = rest[:-16]
                    continue
                resumed = _RESUMED.match(rest)
                if resumed is not None:
                    rest = pending.pop(pid, resumed[1] + "(") + resumed[2]
                for name, pattern in patterns:
                    if rest.startswith(name):
                        match = pattern.match(rest)
                        if match is not None:
                            found.append({"pid": pid, "time": float(moment), "call": name, "fields": match.groups()})
        return len(found)

    return work


def _process_tree(files: list[str]) -> Callable[[], int]:
    tree = importlib.import_module("strace_process_tree")

    def work() -> int:
        with open(files[0], errors="replace") as lines:  # noqa: PTH123
            return len(str(tree.parse_stream(tree.events(lines))))

    return work


def _mcp_behave(files: list[str]) -> Callable[[], int]:
    analyze = importlib.import_module("mcp_behave.analyze").analyze
    return lambda: len(analyze(files[0])["files_opened"])


def _dpkt(files: list[str]) -> Callable[[], int]:
    dpkt: Any = importlib.import_module("dpkt")

    def work() -> int:
        flows: dict[tuple[Any, ...], list[int]] = {}
        found = 0
        with open(files[0], "rb") as stream:  # noqa: PTH123
            reader = dpkt.pcapng.Reader if files[0].endswith("pcapng") else dpkt.pcap.Reader
            for _, raw in reader(stream):
                packet = dpkt.ethernet.Ethernet(raw).data
                if not isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6):
                    continue
                segment = packet.data
                if not isinstance(segment, dpkt.tcp.TCP | dpkt.udp.UDP):
                    continue
                ends = sorted([(packet.src, segment.sport), (packet.dst, segment.dport)])
                flow = flows.setdefault((ends[0], ends[1], type(segment).__name__), [0, 0])
                flow[0] += 1
                flow[1] += len(segment.data)
                if 53 in (segment.sport, segment.dport) and isinstance(segment, dpkt.udp.UDP):
                    message = dpkt.dns.DNS(segment.data)
                    found += len([one.name for one in message.qd]) + len([one.type for one in message.an])
                elif segment.dport == 443 and segment.data[:1] == b"\x16":
                    for record in dpkt.ssl.tls_multi_factory(segment.data)[0]:
                        hello = dpkt.ssl.TLSHandshake(record.data).data
                        found += len([value for kind, value in hello.extensions if kind == 0])
        return len(flows) + found

    return work


SIDES: dict[str, Side] = {
    "strace relevant": _strace(RELEVANT),
    "strace asked": _strace_asked,
    "strace all": _strace(None),
    "strace set": _strace_set,
    "packets": _packets,
    "both parsers": _both,
    "check": _check,
    "naive strace": _naive_strace,
    "naive strace, all calls": _naive_strace_all,
    "strace-process-tree": _process_tree,
    "mcp-behave": _mcp_behave,
    "dpkt": _dpkt,
}
"""Name -> what prepares the work and returns it."""


def main() -> None:
    """Run one side and print what it took."""
    work = SIDES[sys.argv[1]](sys.argv[2:])
    begin = time.process_time()
    count = work()
    seconds = time.process_time() - begin
    print(json.dumps({"seconds": seconds, "memory": peak_memory(), "count": count}))


if __name__ == "__main__":
    main()
