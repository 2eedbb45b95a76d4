"""``python -m controls list | record | verify | label | image | audit | prune``: recording, and labels."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import fnmatch
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from controls.catalog import Control, Variant, controls
from controls.labelling import draft
from controls.recorder.errors import RecorderError
from controls.recorder.record import record
from controls.recorder.shells import Netns, Shell
from controls.recorder.tools import scratch
from controls.verifying import differences
from mcpdetect.errors import McpDetectError
from mcpdetect.labels.loader import load_label
from mcpdetect.model.text import shown
from mcpdetect.model.vocabulary import LEVELS

__all__ = ["main"]


def _chosen(patterns: list[str]) -> list[tuple[Control, Variant]]:
    """Return the variants whose case id matches one of the patterns (shell style; a prefix names all below it)."""
    found = [(control, variant) for control in controls() for variant in control.variants.values()]
    if not patterns:
        return found
    return [
        (control, variant)
        for control, variant in found
        for case in [f"{control.id}/{variant.name}"]
        if any(fnmatch.fnmatchcase(case, one) or case.startswith(one.rstrip("/") + "/") for one in patterns)
    ]


@contextlib.contextmanager
def _shell(name: str) -> Iterator[Shell]:
    """Give the shell of a name; a guest ends with it."""
    if name == "netns":
        yield Netns()
        return
    from controls.recorder.microvm.shell import MicroVM

    with MicroVM(lambda text: print(text, file=sys.stderr, flush=True)) as shell:
        yield shell


def _record(chosen: list[tuple[Control, Variant]], out: Path, seed: int, shell: Shell, *, probe: bool) -> int:
    """Record cases; one that fails is told, and the others go on. Return the exit status."""
    shell.require(())
    failed = []
    for control, variant in chosen:
        case = f"{control.id}/{variant.name}"
        try:
            folder = record(control, variant, out, seed=seed, probe=probe, shell=shell)
        except RecorderError as error:
            failed.append(case)
            print(f"failed {case}: {error}", file=sys.stderr, flush=True)
            continue
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(f"recorded {case} ({size} bytes)", flush=True)
    if failed:
        print(f"{len(chosen) - len(failed)} recorded, {len(failed)} failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _audit(targets: list[str], shell: Shell, out: Path, arguments: tuple[str, ...], registry: Path | None) -> int:
    """Audit servers one after the other and print what became of each; return the exit status."""
    from controls.auditing import audit
    from controls.registry import update

    broken = 0
    for target in targets:
        found = audit(target, shell, out, arguments=arguments)
        print(f"{target} {found.version}".rstrip())
        for step in found.steps:
            word = {True: "ok", False: "broke", None: "-"}[step.ok]
            print(f"  {step.name:16} {word:6} {shown(step.detail, 300)}{f'  ({step.where})' if step.where else ''}")
        for one in found.result.checks if found.result is not None else ():
            level = (
                f" ({len(one.findings)}, {max((item.level for item in one.findings), key=LEVELS.index)})"
                if one.findings
                else ""
            )
            print(f"  {one.check:24} {one.verdict}{level}")
        broken += found.broke is not None
        if registry is not None:
            update(registry, [found], shell.name, datetime.datetime.now(datetime.UTC).date())
        sys.stdout.flush()
    return 1 if broken else 0


def _image() -> int:
    """Build the guest's image; return the exit status."""
    from controls.recorder.microvm.image import build_image, image_folder

    build_image(lambda text: print(text, file=sys.stderr, flush=True))
    for path in sorted(image_folder().iterdir()):
        print(f"{path} ({path.stat().st_size} bytes)")
    return 0


def _verify(chosen: list[tuple[Control, Variant]], labels: Path, shell: Shell, *, probe: bool) -> int:
    """Record labelled cases into a folder that goes away, and compare; return the exit status."""
    wrong = right = 0
    for control, variant in chosen:
        case = f"{control.id}/{variant.name}"
        path = labels / "cases" / f"{case}.yaml"
        if not path.exists():
            print(f"no label  {case}", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix=scratch("verify")) as folder:
            try:
                found = differences(record(control, variant, Path(folder), probe=probe, shell=shell), load_label(path))
            except (RecorderError, McpDetectError) as error:
                found = [str(error)]
        wrong, right = wrong + bool(found), right + (not found)
        print(
            f"{'differs' if found else 'same':8}  {case}" + "".join(f"\n          {one}" for one in found), flush=True
        )
    print(f"{right} the same, {wrong} different")
    return 1 if wrong or not right else 0


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return its exit status (0 done, 1 a recording failed, 2 usage)."""
    parser = argparse.ArgumentParser(prog="python -m controls", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="list the cases that can be recorded")
    recording = commands.add_parser("record", help="record cases (needs root)")
    labelling = commands.add_parser("label", help="draft labels of recorded cases that have none")
    verifying = commands.add_parser("verify", help="record cases again and compare the verdicts with their labels")
    for one in (listing, recording, labelling, verifying):
        one.add_argument("case", nargs="*", help="case ids or shell patterns, such as egress/direct-ip; default: all")
    recording.add_argument("--out", type=Path, default=Path("corpus"), help="where bundles go (default: corpus)")
    recording.add_argument("--seed", type=int, default=0, help="what canaries are derived from (default: 0)")
    for one in (recording, verifying):
        one.add_argument(
            "--no-probes", dest="probes", action="store_false", help="do not run probes around each target"
        )
        one.add_argument(
            "--shell", choices=["netns", "microvm"], default="netns", help="where the cell stands (default: netns)"
        )
    commands.add_parser("image", help="build the guest's image for --shell microvm, unless it is there")
    auditing = commands.add_parser("audit", help="install, record and check real servers")
    auditing.add_argument("target", nargs="+", help="npm:NAME[@VERSION], pypi:NAME[==VERSION] or command:ARGV")
    auditing.add_argument("--out", type=Path, default=Path("audits"), help="where bundles go (default: audits)")
    auditing.add_argument("--shell", choices=["netns", "microvm"], default="netns", help="where the cell stands")
    auditing.add_argument("--argument", action="append", default=[], help="an argument for the server; repeatable")
    auditing.add_argument("--registry", type=Path, help="JSON file that keeps what became of each server")
    commands.add_parser("prune", help="remove what killed recordings left, and images of other versions")
    verifying.add_argument("--labels", type=Path, default=Path("labels"), help="where labels are (default: labels)")
    labelling.add_argument("--corpus", type=Path, default=Path("corpus"), help="where bundles are (default: corpus)")
    labelling.add_argument("--labels", type=Path, default=Path("labels"), help="where labels go (default: labels)")
    labelling.add_argument("--by", required=True, help="role of the person who compares them with the evidence")
    options = parser.parse_args(argv)
    try:
        if options.command == "image":
            return _image()
        if options.command == "audit":
            with _shell(options.shell) as shell:
                return _audit(options.target, shell, options.out, tuple(options.argument), options.registry)
        if options.command == "prune":
            from controls.recorder.prune import prune

            print("\n".join(f"removed {path}" for path in prune()) or "nothing to remove")
            return 0
        chosen = _chosen(options.case)
        if not chosen:
            print(f"no case matches {' '.join(options.case)}", file=sys.stderr)
            return 2
        if options.command in ("verify", "record"):
            with _shell(options.shell) as shell:
                if options.command == "verify":
                    return _verify(chosen, options.labels, shell, probe=options.probes)
                return _record(chosen, options.out, options.seed, shell, probe=options.probes)
        for control, variant in chosen:
            case = f"{control.id}/{variant.name}"
            if options.command == "list":
                print(f"{variant.truth:7} {case}  {variant.why}")
            elif options.command == "label":
                print(f"{case}: {draft(control, variant, options.corpus, options.labels, options.by)}", flush=True)
    except (RecorderError, McpDetectError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
