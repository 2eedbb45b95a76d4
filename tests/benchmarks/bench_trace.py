"""How fast traces are written and read, as ratios to the standard library's json on the same lines.

Run it as ``python tests/benchmarks/bench_trace.py [EVENTS] [--json]``. Each number is the best of three.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sides import peak_memory

from mcpdetect.ingest.tracefile import TraceFile, write_trace
from mcpdetect.model.event import Event, FileOpen
from mcpdetect.model.net import SocketConnect
from mcpdetect.model.observation import Observation
from mcpdetect.model.place import Where
from mcpdetect.model.trace import Run

BEGIN = 1_700_000_000_000_000_000


class Synthetic:
    """A run of file opens with a connect in every ten, as strace logs have them."""

    def __init__(self, count: int) -> None:
        self.run = Run(id="benchmark")
        self._events = [self._event(number) for number in range(count)]

    @staticmethod
    def _event(number: int) -> Event:
        where = Where("trace.log", number + 1)
        if number % 10:
            path = f"/usr/lib/node_modules/pkg{number % 997}/index.js"
            opened: Event = FileOpen(
                where, BEGIN + number, "openat", 17, process="4242", path=path, access="read", flags="O_RDONLY", fd=17
            )
            return opened
        address = f"203.0.113.{number % 251}"
        return SocketConnect(where, BEGIN + number, "connect", 0, process="4242", address=address, port=443)

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the wanted events."""
        return (event for event in self._events if wanted is None or event.kind in wanted)

    def observations(self) -> list[Observation]:
        """Return one observation."""
        return [Observation("syscalls", "trace.log", "strace")]


def best(work: Callable[[], object]) -> float:
    """Return the shortest of three runs, in processor seconds."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def measured(count: int) -> list[tuple[str, float, float]]:
    """Return what was timed over ``count`` events, the seconds it took, and those of its yardstick."""
    source = Synthetic(count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        write_trace(path, source, form="json")
        lines = path.read_text().splitlines()[2 : 2 + count]
        texts = [line.removesuffix(",") for line in lines]
        loaded = [json.loads(text) for text in texts]
        pretty = Path(folder) / "pretty.json"
        pretty.write_text(json.dumps(json.loads(path.read_text()), indent=2))

        dumps = best(lambda: [json.dumps(value) for value in loaded])
        loads = best(lambda: [json.loads(text) for text in texts])
        rows = [("json.dumps of each event (yardstick)", dumps, dumps), ("json.loads (yardstick)", loads, loads)]
        rows.append(("write", best(lambda: write_trace(io.BytesIO(), source, form="json")), dumps))
        for name, file, trusted in (("trusted", path, True), ("checked", path, False), ("pretty", pretty, False)):
            time_taken = best(lambda: sum(1 for _ in TraceFile(file, trusted=trusted).events()))  # noqa: B023  called at once
            rows.append((f"read, {name}", time_taken, loads))
        one = frozenset({"socket.connect"})
        rows.append(
            ("read, trusted, one kind in ten", best(lambda: list(TraceFile(path, trusted=True).events(one))), loads)
        )
    return rows


def main() -> None:
    """Measure and print."""
    numbers = [word for word in sys.argv[1:] if word.isdigit()]
    count = int(numbers[0]) if numbers else 100_000
    rows = measured(count)
    if "--json" in sys.argv:
        print(json.dumps({"rows": rows, "memory": peak_memory()}))
        return
    print(f"{count} events")
    for name, seconds, yardstick in rows:
        print(f"{name:40} {count / seconds / 1000:8.0f} k/s {yardstick / seconds:6.2f} x yardstick")
    print(f"peak memory {peak_memory():.0f} MB, events held included")


if __name__ == "__main__":
    main()
