"""How fast the checks of texts read 10,000 tool descriptions, against a plain scan by regular expressions.

    python tests/benchmarks/bench_texts.py [--count 10000]

The descriptions are made of the texts of the planted controls, honest and not, one in twenty of them not. Both sides
run in this process by turns, three times; the best counts, in processor seconds. The plain scan searches each text for
twelve patterns without case, as simple scanners do.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from mcpdetect.contract import Context, Detector
from mcpdetect.data.loader import load_yaml
from mcpdetect.engine.discovery import detectors
from mcpdetect.model.mcp import McpText, McpTool
from mcpdetect.model.place import Where

PLANTED = Path(__file__).resolve().parents[2] / "controls" / "planted" / "mcp"
CHECKS = ("mcp.exfil-instruction", "mcp.tool-poisoning", "mcp.hidden-text", "mcp.shadowing", "mcp.drift")
_PLAIN = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"ignore (all |any )?(previous|prior|above) (instructions|rules)",
        r"disregard .{0,40}(instructions|rules|prompt)",
        r"do not (tell|inform|mention).{0,40}user",
        r"<important>",
        r"system prompt",
        r"(send|forward|post|upload).{0,80}https?://",
        r"(read|cat|open).{0,40}(\.ssh|\.aws|\.env|id_rsa)",
        r"curl .{0,200}\| *(ba)?sh",
        r"[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]",
        r"you are now",
        r"<!--.*?-->",
        r"[A-Za-z0-9+/]{40,}={0,2}",
    )
]


class _Nothing:
    baseline = None

    def limit(self, *args: object, **more: object) -> None:
        """Take no notice."""


def made(count: int) -> list[McpTool]:
    """Return ``count`` tools of texts in a fixed order."""
    rng = random.Random(1)  # noqa: S311  the same texts each time
    honest, other = [], []
    for slug in ("tool-poisoning", "hidden-text"):
        data = load_yaml(PLANTED / slug / "texts.yaml")
        honest += [str(item["text"]) for item in data["silent"].values()]
        other += [str(item["text"]) for item in data["fires"].values()]
    tools = []
    for number in range(count):
        parts = rng.choices(honest, k=rng.randint(2, 6))
        if number % 20 == 0:
            parts[rng.randrange(len(parts))] = rng.choice(other)
        texts = [McpText("/name", f"tool_{number}"), McpText("/description", "\n".join(parts))]
        tools.append(
            McpTool(Where("mcp.jsonl", number), number, name=f"tool_{number}", texts=texts, digest=str(number))
        )
    return tools


def judged(tools: list[McpTool], kinds: list[type[Detector]]) -> int:
    """Return how many findings all checks have."""
    context = cast("Context", _Nothing())
    running = [kind(context) for kind in kinds]
    found = sum(1 for tool in tools for one in running for _ in one.on_event(tool))
    return found + sum(1 for one in running for _ in one.finish())


def scanned(tools: list[McpTool]) -> int:
    """Return how often a plain pattern is met."""
    return sum(
        1 for tool in tools for text in tool.texts for pattern in _PLAIN if pattern.search(text.text) is not None
    )


def best(work: Callable[[], int]) -> tuple[float, int]:
    """Return the fewest processor seconds of three runs, and what the work found."""
    times = []
    found = 0
    for _ in range(3):
        begun = time.process_time()
        found = work()
        times.append(time.process_time() - begun)
    return min(times), found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    count = parser.parse_args().count
    tools = made(count)
    size = sum(len(text.text) for tool in tools for text in tool.texts)
    every = detectors()
    plain, met = best(lambda: scanned(tools))
    print(f"{count:,} descriptions, {size / 1e6:.1f} million characters")
    print(f"{'plain scan':24} {plain:7.2f} s  {count / plain:9,.0f} a second  {met:,} matches")
    for names in [[name] for name in CHECKS] + [list(CHECKS)]:
        taken, found = best(lambda names=names: judged(tools, [every[name] for name in names]))  # type: ignore[misc]
        name = names[0] if len(names) == 1 else "all of them"
        speed = f"{taken:7.2f} s  {count / taken:9,.0f} a second"
        print(f"{name:24} {speed}  {found:,} findings  {taken / plain:5.1f} x the scan")
    return 0


if __name__ == "__main__":
    sys.exit(main())
