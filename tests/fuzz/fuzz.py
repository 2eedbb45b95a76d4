"""Fuzz the parsers: any bytes must give events, each with a place, or the parser's own error.

    python tests/fuzz/fuzz.py [--seconds 60] [--engine atheris|mutate] [--seed N] [--keep FOLDER] [TARGET...]
    python tests/fuzz/fuzz.py --try FILE TARGET

With atheris (``pip install atheris``), coverage guides the search; without it, seeds are changed at random, and a line
says so. Seeds are cut from ``corpus/`` on the fly. An input that breaks the contract is kept in FOLDER and named, the
exit code is then 1; ``--try`` runs one again.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from targets import TARGETS

_ONE = str(Path(__file__).with_name("one.py"))
_EXECUTED = re.compile(r"stat::number_of_executed_units: (\d+)")


def _fuzz(name: str, engine: str, seconds: int, seed: int, root: Path) -> bool:
    """Fuzz one target and return whether nothing was found."""
    folder = root / name
    for part in ("seeds", "found"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    longest = TARGETS[name].longest
    for data in TARGETS[name].seeds():
        (folder / "seeds" / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data[:longest])
    count = len(list((folder / "seeds").iterdir()))
    log = folder / "log.txt"
    with log.open("wb") as out:
        command = [sys.executable, _ONE, name, engine, str(seconds), str(seed), str(folder)]
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False, timeout=seconds + 300)
    text = log.read_text("utf-8", "replace")
    executed = _EXECUTED.findall(text)
    found = sorted((folder / "found").iterdir())
    tried = f"{int(executed[-1]):,} inputs" if executed else "stopped early"
    print(
        f"{name:12} {count:4} seeds  {tried:>18}  {'ok' if not found and done.returncode == 0 else 'BROKEN'}",
        flush=True,
    )
    if found or done.returncode != 0:
        print("\n".join(f"    {line}" for line in _told(text)))
        for path in found:
            print(f"    kept: {path}")
    return not found and done.returncode == 0


def _told(text: str) -> list[str]:
    """Return the last lines of a traceback, or of the log."""
    lines = text.splitlines()
    ends = [at for at, line in enumerate(lines) if line.startswith("Traceback")]
    begin = ends[-1] if ends else max(len(lines) - 12, 0)
    return [line for line in lines[begin : begin + 60] if not line.startswith(("==", "stat::", "MS:"))][-24:]


def main() -> int:
    """Fuzz the targets named, all by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="*", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--engine", choices=["atheris", "mutate"], help="default: atheris where it is installed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for seeds, logs and what is found (default: a new one)")
    parser.add_argument("--try", dest="once", type=Path, help="run one target on this file alone")
    options = parser.parse_args()
    unknown = set(options.target) - set(TARGETS)
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if options.once is not None:
        if len(options.target) != 1:
            parser.error("--try takes one target")
        command = [sys.executable, _ONE, options.target[0], "try", "0", "0", "-", str(options.once)]
        return subprocess.run(command, check=False).returncode
    engine = options.engine or ("atheris" if importlib.util.find_spec("atheris") else "mutate")
    if engine == "mutate":
        print("NOT GUIDED: seeds are changed at random; install atheris to let coverage guide the search")
    root = options.keep or Path(tempfile.mkdtemp(prefix="mcpdetect-fuzz-run-"))
    sound = [_fuzz(name, engine, options.seconds, options.seed, root) for name in options.target or TARGETS]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main())
