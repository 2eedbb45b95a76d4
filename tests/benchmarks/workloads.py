"""The workloads: what is run against what on which input, and how fast it should be."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import packet_input
import sides
import strace_input
from measure import Run, Runner, alternate, program, side

from mcpdetect.model.kinds import CALLS

__all__ = ["WORKLOADS", "Row", "Setting"]


@dataclass(frozen=True)
class Setting:
    """Where and how much: a scratch folder, the size factor, the interpreter that has the peers (None: none)."""

    folder: Path
    quick: bool
    peers: str | None

    def scaled(self, full: int) -> int:
        """Return an amount, a fifth of it when in a hurry."""
        return full // 5 if self.quick else full


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        workload, against: what was compared.
        value: how many times as fast as the yardstick (or the figure that ``unit`` says).
        goal: what it should be, None where there is none; ``at_most`` says that less is better.
        ours, theirs: seconds.
        note: anything else worth reading.
    """

    workload: str
    against: str
    value: float
    goal: float | None = None
    at_most: bool = False
    unit: str = "x"
    ours: float | None = None
    theirs: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is met, None where there is none."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.at_most else self.value >= self.goal


def _rates(run: Run, size: int, what: str, count: int) -> str:
    return f"{size / run.seconds / 1e6:.0f} MB/s, {count / run.seconds / 1000:.0f} k {what}/s, {run.memory:.0f} MB"


def _compare(
    workload: str, ours: Runner, others: dict[str, tuple[Runner, float | None, bool]], note: Callable[[Run], str]
) -> Iterator[Row]:
    """Yield a row for each yardstick: how many times as fast we are, or, if ``bound``, how many times as slow."""
    runs = alternate({"ours": ours, **{name: runner for name, (runner, _, _) in others.items()}})
    mine = runs["ours"]
    first = note(mine)
    for name, (_, goal, bound) in others.items():
        other = runs[name]
        value = mine.seconds / other.seconds if bound else other.seconds / mine.seconds
        unit = "x its time" if bound else "x as fast"
        yield Row(workload, name, value, goal, bound, unit, mine.seconds, other.seconds, first)
        first = ""


def _installed(name: str) -> bool:
    return shutil.which(name) is not None


def _log(setting: Setting, megabytes: int) -> Path:
    path = setting.folder / f"log{megabytes}.strace"
    if not path.exists():
        real = setting.folder / "real.strace"
        if not real.exists():
            real.write_bytes(strace_input.record(setting.folder))
        strace_input.log_of(real.read_bytes(), megabytes * 1_000_000, path)
    return path


def strace(setting: Setting) -> Iterator[Row]:
    """An strace log to the events that matter, to those the checks ask for, to all."""
    path = _log(setting, setting.scaled(30))
    size, lines = path.stat().st_size, path.read_bytes().count(b"\n")
    names = sorted(frozenset().union(*(CALLS.get(kind, ()) for kind in sides.RELEVANT)))
    words = setting.folder / "calls.txt"
    words.write_text("".join(f" {name}(\n<... {name} resumed>\n" for name in names))
    others: dict[str, tuple[Runner, float | None, bool]] = {
        "a naive loop of re": (side("naive strace", path), 2.5, False)
    }
    if setting.peers is not None:
        for name, goal in (("strace-process-tree", 3.0), ("mcp-behave", 4.0)):
            others[name] = (side(name, path, python=setting.peers), goal, False)
    others["grep -c -F -f of the calls"] = (program("grep", "-c", "-F", "-f", words, path), 8.0, True)

    def note(run: Run) -> str:
        return f"{_rates(run, size, 'lines', lines)}, {run.count} events"

    yield from _compare("strace, calls that matter", side("strace relevant", path), others, note)
    naive: dict[str, tuple[Runner, float | None, bool]] = {
        "a naive loop of re over the same calls": (side("naive strace, all calls", path), 1.0, False),
        "a naive loop of re": (side("naive strace", path), None, False),
    }
    yield from _compare("strace, what the checks ask", side("strace asked", path), naive, note)
    yield from _compare("strace, every kind", side("strace all", path), naive, note)


def strace_set(setting: Setting) -> Iterator[Row]:
    """A set of files written by -ff, merged by time, with few files open at once."""
    begin = strace_input.record_set(setting.folder, setting.scaled(1000))
    files = list(begin.parent.glob(f"{begin.name}.*"))
    size = sum(path.stat().st_size for path in files)
    others: dict[str, tuple[Runner, float | None, bool]] = {}
    if _installed("strace-log-merge"):
        others["strace-log-merge"] = (program("strace-log-merge", begin), 4.0, False)
    others["reading the files"] = (program("cat", *files), None, True)
    ours = side("strace set", begin, limit=1024)
    yield from _compare(
        "strace -ff, merged", ours, others, lambda run: f"{len(files)} files, {size / 1e6:.0f} MB, {run.memory:.0f} MB"
    )


def hostile(setting: Setting) -> Iterator[Row]:
    """Lines that a traced program chose: twice as long must take about twice the time."""
    count = setting.scaled(100)
    for shape in strace_input.HOSTILE:
        paths = []
        for length in (32_768, 65_536):
            path = setting.folder / f"hostile{length}.strace"
            strace_input.hostile(shape, length, count, path)
            paths.append(path)
        runs = alternate({str(path): side("strace all", path) for path in paths})
        small, large = (runs[str(path)] for path in paths)
        speed = paths[1].stat().st_size / large.seconds / 1e6
        name = f"hostile strace lines: {shape}"
        yield Row(name, "half the length", large.seconds / small.seconds, 2.2, True, "x its time", large.seconds,
                  small.seconds, f"{large.memory:.0f} MB")  # fmt: skip
        yield Row(name, "the clock", speed, 5.0, False, "MB/s", large.seconds)


def packets(setting: Setting) -> Iterator[Row]:
    """A capture to flows, names and hosts."""
    count = setting.scaled(100_000)
    path, other = setting.folder / "net.pcap", setting.folder / "net.pcapng"
    packet_input.write_pcap(path, packet_input.packets(count))
    packet_input.write_pcapng(other, packet_input.packets(count))
    size = path.stat().st_size
    others = _packet_peers(setting, path, 6.0, 10.0, 1.5)
    if _installed("capinfos"):
        others["capinfos -c"] = (program("capinfos", "-c", path), 15.0, True)

    def note(run: Run) -> str:
        return f"{_rates(run, size, 'packets', count)}, {run.count} events"

    yield from _compare("pcap", side("packets", path), others, note)
    yield from _compare("pcapng", side("packets", other), {"pcap": (side("packets", path), 1.2, True)}, note)
    small = setting.folder / "small.pcap"
    packet_input.write_pcap(small, packet_input.small_flows(count))
    size = small.stat().st_size
    others = _packet_peers(setting, small, 6.0, 10.0, 1.5)
    if _installed("capinfos"):
        others["capinfos -c"] = (program("capinfos", "-c", small), 15.0, True)
    yield from _compare("pcap of small flows", side("packets", small), others, note)
    only = setting.folder / "dns.pcap"
    packet_input.write_pcap(only, packet_input.dns_only(count))
    size = only.stat().st_size
    yield from _compare("pcap of DNS", side("packets", only), _packet_peers(setting, only, 5.0, 4.0, 1.0), note)


def _packet_peers(
    setting: Setting, path: Path, dpkt: float, tshark: float, tcpdump: float
) -> dict[str, tuple[Runner, float | None, bool]]:
    others: dict[str, tuple[Runner, float | None, bool]] = {}
    if setting.peers is not None:
        others["a naive loop of dpkt"] = (side("dpkt", path, python=setting.peers), dpkt, False)
    if _installed("tshark"):
        names = "frame.time_epoch ip.src ip.dst ipv6.src ipv6.dst tcp.srcport tcp.dstport udp.srcport udp.dstport"
        fields = [*names.split(), "dns.qry.name", "tls.handshake.extensions_server_name"]
        options = [part for name in fields for part in ("-e", name)]
        others["tshark -T fields"] = (program("tshark", "-n", "-r", path, "-T", "fields", *options), tshark, False)
    if _installed("tcpdump"):
        others["tcpdump -nn, printing"] = (program("tcpdump", "-nn", "-r", path), tcpdump, False)
    return others


def check(setting: Setting) -> Iterator[Row]:
    """All checks over a log and a capture, against reading the two for them."""
    log, capture = _log(setting, setting.scaled(30)), setting.folder / "check.pcap"
    first = log.read_bytes()[:64].split()[1]
    packet_input.write_pcap(capture, packet_input.packets(setting.scaled(100_000)), round(float(first) * 1_000_000))
    command = program(
        sys.executable, "-m", "mcpdetect", "check", "--strace", log, "--pcap", capture, "--format", "json"
    )
    runs = alternate({"check": side("check", log, capture), "both": side("both parsers", log, capture)})
    ours, both = runs["check"], runs["both"]
    yield Row("all checks over both", "the two parsers alone", ours.seconds / both.seconds, None, True, "x their time",
              ours.seconds, both.seconds, f"{ours.memory:.0f} MB")  # fmt: skip
    begin = alternate({"start": program(sys.executable, "-m", "mcpdetect", "detectors"), "command": command})
    yield Row("mcpdetect check, the command", "its start alone", begin["command"].seconds, None, True, "s",
              begin["command"].seconds, begin["start"].seconds)  # fmt: skip


def memory(setting: Setting) -> Iterator[Row]:
    """Peak memory may not grow with the input."""
    sizes = (2, 20) if setting.quick else (10, 100)
    runs = alternate({str(size): side("strace asked", _log(setting, size)) for size in sizes}, turns=1)
    small, large = (runs[str(size)].memory for size in sizes)
    what = f"{sizes[1]} MB after {sizes[0]} MB of strace"
    yield Row("memory", what, large - small, 5.0, True, "MB more")
    yield Row("memory", f"{sizes[1]} MB of strace", large, 64.0, True, "MB")
    counts = (setting.scaled(50_000), setting.scaled(500_000))
    paths = [setting.folder / f"memory{count}.pcap" for count in counts]
    for path, count in zip(paths, counts, strict=True):
        packet_input.write_pcap(path, packet_input.packets(count))
    runs = alternate({str(path): side("packets", path) for path in paths}, turns=1)
    small, large = (runs[str(path)].memory for path in paths)
    yield Row("memory", f"{counts[1]:,} packets after {counts[0]:,}", large - small, None, True, "MB more",
              note=f"{large:.0f} MB")  # fmt: skip


def trace(setting: Setting) -> Iterator[Row]:
    """Writing and reading trace.json."""
    count = setting.scaled(100_000)
    command = [sys.executable, str(Path(__file__).with_name("bench_trace.py")), str(count), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    found = json.loads(done.stdout)
    goals = {"write": 1000.0, "read, trusted": 500.0, "read, checked": 250.0}
    for name, seconds, yardstick in found["rows"]:
        if "yardstick" in name:
            continue
        yield Row(f"trace.json: {name}", "json of the standard library", yardstick / seconds, None, False, "x as fast",
                  seconds, yardstick)  # fmt: skip
        yield Row(f"trace.json: {name}", "the clock", count / seconds / 1000, goals.get(name), False, "k events/s",
                  seconds)  # fmt: skip
    yield Row("trace.json", "memory with the events held", found["memory"], None, True, "MB")


WORKLOADS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "strace": strace,
    "set": strace_set,
    "hostile": hostile,
    "packets": packets,
    "trace": trace,
    "check": check,
    "memory": memory,
}
"""Name -> what makes its input and yields its rows."""
