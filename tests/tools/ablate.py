"""Ablation at length: every cut of every evidence file of the corpus, judged with every set of the other files.

``python tests/tools/ablate.py [--seed N] [--kind tail] [CASE...]`` prints each violation of monotone honesty and exits
with 1 when there is one. The ordinary tests draw some of these at random; this tries the whole of what is finite and
``--draws`` of what is not.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from mcpdetect.engine.discovery import detectors
from mcpdetect.errors import InputError
from mcpdetect.model.kinds import CALLS
from mcpdetect.score.ablation import Ablated, Violation, violations
from mcpdetect.score.corpus import Case, Corpus, load_cases
from mcpdetect.score.cuts import (
    Content,
    content_of,
    cut_strings,
    cut_tail,
    drop_class,
    drop_packets,
    drop_process,
    written,
)
from mcpdetect.score.recording import Recording

ROOT = Path(__file__).parents[2]


def cuts(content: Content, rnd: random.Random, draws: int) -> Iterator[tuple[str, str, Content]]:
    """Yield kind, description and content of every finite cut of a file, and some of the others."""
    number = len(content.parts)
    tails = {0, 1, number // 2, number - 1, *(rnd.randrange(number) for _ in range(draws) if number)}
    for left in sorted(tail for tail in tails if 0 <= tail < number):
        yield "tail", f"all after part {left} of {number}", cut_tail(content, left)
    if content.item.channel == "syscalls":
        for size in (0, 16, 32):
            yield "strings", f"strings beyond {size} bytes", cut_strings(content, size)
        for pid in content.processes:
            yield "process", f"process {pid.decode()}", drop_process(content, pid)
        for kind in CALLS:
            yield "class", f"calls of {kind}", drop_class(content, kind)
    if content.item.channel == "packets" and number:
        for gone in [set(range(number)), *({at} for at in range(number) if number <= 50)]:
            yield "packets", f"packets {sorted(gone)} of {number}", drop_packets(content, gone)
        for _ in range(draws):
            gone = set(rnd.sample(range(number), rnd.randint(1, number)))
            yield "packets", f"packets {sorted(gone)} of {number}", drop_packets(content, gone)


def ablate(case: Case, rnd: random.Random, draws: int, kinds: list[str]) -> tuple[int, list[Violation]]:
    """Return how often a case was judged, and its violations, the smallest of each check."""
    record = Recording(case.bundle, detectors())
    right = {check: one.verdict for check, one in case.label.checks.items()} if case.label.todo else None
    judged: list[Ablated] = []
    for item in record.bundle.evidence:
        content = content_of(item)
        others = [one.name for one in record.bundle.evidence if one is not item]
        for kind, taken, cut in cuts(content, rnd, draws) if content else ():
            if kinds and kind not in kinds:
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    kept = record.reread(written(cut, Path(folder)))
                except InputError:
                    continue  # an empty file claims nothing
            for size in range(len(others) + 1):
                for gone in combinations(others, size):
                    results = record.judge(without=gone, changed={item.name: kept})
                    words = " and ".join([f"{taken} of {item.name}", *gone])
                    judged.append(Ablated(words, size, results))
    return len(judged), violations(case.label.case, record.whole, judged, right)


def main() -> int:
    """Run over the corpus; return 1 when a verdict turned over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--kind", action="append", default=[])
    asked = parser.parse_args()
    rnd = random.Random(asked.seed)  # noqa: S311
    judged = wrong = 0
    for case in load_cases(Corpus("corpus", ROOT / "corpus", ROOT / "labels"), list(detectors())):
        if asked.cases and case.label.case not in asked.cases:
            continue
        number, found = ablate(case, rnd, asked.draws, asked.kind)
        judged += number
        wrong += len(found)
        for one in found:
            sys.stdout.write(f"{one}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{judged} ablations, {wrong} verdicts turned over\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
