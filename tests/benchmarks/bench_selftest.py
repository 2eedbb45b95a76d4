"""How fast the labelled corpus is tested, ablated and measured: ``python tests/benchmarks/bench_selftest.py``.

Goals: 1,000 cases in under 60 s on two cores (17 cases a second), and all the channel and class ablation of one changed
detector in under 60 s. Times are processor seconds of one process; the yardstick is a count to 20 million in the same
interpreter, since machines differ.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

from mcpdetect.engine.discovery import detectors
from mcpdetect.score.ablation import channel_ablations, class_ablations
from mcpdetect.score.corpus import Corpus, load_cases
from mcpdetect.score.measure import measure
from mcpdetect.score.recording import Recording
from mcpdetect.score.selftest import selftest

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Measure and print."""
    began = process_time()
    count = 0
    while count < 20_000_000:
        count += 1
    yard = process_time() - began
    every = detectors()

    began = process_time()
    cases = load_cases(Corpus("corpus", ROOT / "corpus", ROOT / "labels"), list(every))
    loaded = process_time() - began
    began = process_time()
    result = selftest(cases, every)
    tested = process_time() - began
    whole = loaded + tested
    print(f"yardstick            {yard:6.2f} s")
    print(f"labels               {loaded:6.2f} s  {1000 * loaded / len(cases):.1f} ms a label")
    print(
        f"selftest             {whole:6.2f} s  {len(cases) / whole:.0f} cases a second, {len(result.failures)} failed"
    )
    print(f"  1,000 cases        {1000 * whole / len(cases):6.1f} s  (goal: under 60 s)")

    for check, kind in every.items():
        began = process_time()
        number = 0
        for case in cases:
            record = Recording(case.bundle, {check: kind})
            number += sum(1 for _ in channel_ablations(record)) + sum(1 for _ in class_ablations(record))
        spent = process_time() - began
        print(f"ablation of one      {spent:6.2f} s  {check}: {number} ablations  (goal: under 60 s)")

    began = process_time()
    measure(cases, every)
    print(f"coverage             {process_time() - began:6.2f} s")


if __name__ == "__main__":
    main()
