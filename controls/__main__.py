"""``python -m controls list | record | verify | label | image | audit | prune``: recording, and labels.

Exit status: 0 all done; 1 a case failed or differs, a server broke; 2 usage; 3 nothing can be recorded here (no root, a
program or an image is missing); 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import fnmatch
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import TypeVar

from controls.catalog import Control, Variant, controls
from controls.labelling import draft
from controls.pool import Failed, each, guests_at_once
from controls.progress import Progress
from controls.recorder.errors import RecorderError
from controls.recorder.options import SHELLS
from controls.recorder.shells import Shell, open_shell
from controls.working import AuditTask, Task, audit_target, record_case, verify_case
from mcpdetect.errors import McpDetectError

__all__ = ["main"]

Result = TypeVar("Result")

_DONE, _WRONG, _USAGE, _IMPOSSIBLE, _INTERRUPTED = 0, 1, 2, 3, 130


def _chosen(patterns: list[str]) -> list[tuple[Control, Variant]]:
    """Return the variants whose case id matches one of the patterns; nothing where one of these matches nothing.

    A pattern is a shell's, for the whole id, or whole parts of the id in their order: ``egress``, ``direct-ip``,
    ``direct-ip/c-tcp4``.
    """
    found = [(control, variant) for control in controls() for variant in control.variants.values()]
    if not patterns:
        return found
    cases = [f"{control.id}/{variant.name}" for control, variant in found]
    matched = [{case for case in cases if _fits(case, pattern)} for pattern in patterns]
    if lost := [pattern for pattern, fitting in zip(patterns, matched, strict=True) if not fitting]:
        _tell(f"no case matches {' '.join(lost)}")
        return []
    wanted = set[str]().union(*matched)
    return [one for case, one in zip(cases, found, strict=True) if case in wanted]


def _fits(case: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(case, pattern) or f"/{pattern.strip('/')}/" in f"/{case}/"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _jobs(options: argparse.Namespace, shell: str) -> int:
    """Return how many cases are done side by side: as asked, as many as processors for 0, as many guests as fit."""
    wanted: int = options.jobs or len(os.sched_getaffinity(0))
    if shell != "microvm":
        return wanted
    fit = guests_at_once(wanted)
    if fit < wanted:
        _tell(f"{fit} instead of {wanted} side by side: more guests do not fit into the memory that is free")
    return fit


def _possible(shells: Iterable[str]) -> str | None:
    """Return why nothing can be recorded here, None when something can."""
    try:
        for name in shells:
            with open_shell(name) as shell:
                shell.require(())
    except RecorderError as error:
        return str(error)
    return None


def _each(
    function: Callable[[Task, Shell], Result], tasks: list[Task], options: argparse.Namespace
) -> Iterator[tuple[Task, Result | Failed]]:
    """Yield every case with what became of it: where ``--shell`` says, else each where its control wants it."""
    for shell in SHELLS:
        here = [task for task in tasks if (options.shell or task.variant.shell) == shell]
        if here:
            yield from each(function, here, where=shell, jobs=_jobs(options, shell))


def _tasks(chosen: list[tuple[Control, Variant]], options: argparse.Namespace) -> list[Task]:
    return [
        Task(control, variant, options.out, options.seed, options.probes, options.resume, options.labels)
        for control, variant in chosen
    ]


def _why(task: Task, failed: Failed) -> str:
    """Return why a case failed; most reasons begin with its id, which is told already."""
    return failed.why.removeprefix(f"{task.case}: ")


def _record(chosen: list[tuple[Control, Variant]], options: argparse.Namespace) -> int:
    """Record cases; one that fails is told, and the others go on. Return the exit status."""
    tasks = _tasks(chosen, options)
    with Progress(len(tasks), "recording", ("recorded", "kept", "failed")) as progress:
        for task, result in _each(record_case, tasks, options):
            if isinstance(result, Failed):
                progress.done(task.control.id, "failed", f"failed {task.case}: {_why(task, result)}", wrong=True)
            else:
                word = "kept" if result.kept else "recorded"
                progress.done(task.control.id, word, f"{word} {task.case} ({result.size} bytes)")
    print(progress.table())
    return _WRONG if progress.count("failed") else _DONE


def _verify(chosen: list[tuple[Control, Variant]], options: argparse.Namespace) -> int:
    """Record labelled cases and compare; without ``--out`` the recordings go away. Return the exit status."""
    tasks = _tasks(chosen, options)
    with Progress(len(tasks), "verifying", ("same", "differs", "failed", "no label")) as progress:
        for task, result in _each(verify_case, tasks, options):
            if isinstance(result, Failed):
                progress.done(task.control.id, "failed", f"failed    {task.case}: {_why(task, result)}", wrong=True)
            elif result is None:
                progress.done(task.control.id, "no label", f"no label  {task.case}")
            else:
                word = "differs" if result else "same"
                lines = [f"{word:8}  {task.case}", *(f"          {one}" for one in result)]
                progress.done(task.control.id, word, "\n".join(lines))
    print(progress.table())
    return _WRONG if progress.count("differs") + progress.count("failed") or not progress.count("same") else _DONE


def _audit(options: argparse.Namespace) -> int:
    """Audit servers and print what became of each; return the exit status."""
    from controls.auditreport import told
    from controls.registry import update
    from controls.serverlist import chosen

    try:
        targets = [server.target for one in options.target for server in chosen(one)]
    except RecorderError as error:
        _tell(str(error))
        return _USAGE
    kinds = (options.record_install, options.scripts)
    shell = options.shell or SHELLS[0]
    tasks = [AuditTask(target, options.out, tuple(options.argument), options.resume, *kinds) for target in targets]
    with Progress(len(tasks), "auditing", ("whole", "broke", "failed")) as progress:
        for task, found in each(audit_target, tasks, where=shell, jobs=_jobs(options, shell)):
            if isinstance(found, Failed):
                progress.done(task.target.partition(":")[0], "failed", f"{task.target}: {found.why}", wrong=True)
                continue
            word = "whole" if found.broke is None else "broke"
            progress.done(task.target.partition(":")[0], word, "\n".join(told(found)))
            if options.registry is not None:
                today = datetime.datetime.now(datetime.UTC).date()
                update(options.registry, [found], shell, found.recorded or today)
    print(progress.table())
    return _WRONG if progress.count("broke") + progress.count("failed") else _DONE


def _image() -> int:
    """Build the guest's image; return the exit status."""
    from controls.recorder.microvm.image import build_image, image_folder

    build_image(_tell)
    for path in sorted(image_folder().iterdir()):
        print(f"{path} ({path.stat().st_size} bytes)")
    return _DONE


def _prune() -> int:
    from controls.recorder.prune import prune

    print("\n".join(f"removed {path}" for path in prune()) or "nothing to remove")
    return _DONE


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError("a number of cases, or 0 for as many as processors")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m controls", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="list the cases that can be recorded")
    recording = commands.add_parser("record", help="record cases (needs root)")
    labelling = commands.add_parser("label", help="draft labels of recorded cases that have none")
    verifying = commands.add_parser("verify", help="record cases again and compare the verdicts with their labels")
    auditing = commands.add_parser("audit", help="install, record and check real servers")
    for one in (listing, recording, labelling, verifying):
        one.add_argument(
            "case", nargs="*", help="case ids, parts of them such as direct-ip, or shell patterns; default: all"
        )
    for one in (recording, verifying):
        one.add_argument("--seed", type=int, default=0, help="what canaries are derived from (default: 0)")
        one.add_argument(
            "--no-probes", dest="probes", action="store_false", help="do not run probes around each target"
        )
    for one in (recording, verifying, auditing):
        one.add_argument(
            "--resume", action="store_true", help="keep bundles below --out that are whole and of the same inputs"
        )
    for one in (recording, verifying, auditing):
        one.add_argument(
            "--shell", choices=SHELLS, help="where the cell stands (default: what the control says, else netns)"
        )
        one.add_argument(
            "--jobs", type=_positive, default=1, metavar="N", help="side by side; 0: one a processor (default: 1)"
        )
    recording.add_argument("--out", type=Path, default=Path("corpus"), help="where bundles go (default: corpus)")
    verifying.add_argument("--out", type=Path, help="keep the recordings here (default: they go away)")
    auditing.add_argument("--out", type=Path, default=Path("audits"), help="where bundles go (default: audits)")
    auditing.add_argument(
        "target",
        nargs="+",
        help="npm:NAME[@VERSION], pypi:NAME[==VERSION] or command:ARGV; "
        "listed or listed:microvm are those of controls/servers.yaml",
    )
    auditing.add_argument("--argument", action="append", default=[], help="an argument for the server; repeatable")
    auditing.add_argument("--registry", type=Path, help="JSON file that keeps what became of each server")
    auditing.add_argument(
        "--record-install", action="store_true", help="record the installation too, in the cell, out of a local cache"
    )
    auditing.add_argument(
        "--scripts", action="store_true", help="with --record-install: install scripts run, in the cell alone"
    )
    for one in (recording, verifying, labelling):
        one.add_argument("--labels", type=Path, default=Path("labels"), help="where labels are (default: labels)")
    labelling.add_argument("--corpus", type=Path, default=Path("corpus"), help="where bundles are (default: corpus)")
    labelling.add_argument("--todo", help="why the control's own check is wrong today; every case named gets it")
    labelling.add_argument("--place", action="append", default=[], help="with --todo: evidence of what is missed")
    labelling.add_argument("--by", required=True, help="role of the person who compares them with the evidence")
    commands.add_parser("image", help="build the guest's image for --shell microvm, unless it is there")
    commands.add_parser("prune", help="remove what killed recordings left, and images of other versions")
    return parser


@contextlib.contextmanager
def _ending_properly() -> Iterator[None]:
    """Make SIGTERM end what is under way as Ctrl-C does: cells, guests and folders are taken down."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return its exit status, see the module."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command == "verify" and options.resume and options.out is None:
        parser.error("--resume needs --out: without it nothing is kept")
    if options.command == "audit" and options.scripts and not options.record_install:
        parser.error("--scripts needs --record-install: outside the cell no install script runs")
    if options.command == "audit" and options.record_install and options.registry is not None:
        parser.error("--registry keeps what the runs of a server show, not its installation: audit it without")
    try:
        with _ending_properly():
            status = _run(options)
            sys.stdout.flush()
            return status
    except (RecorderError, McpDetectError) as error:
        _tell(str(error))
        return _WRONG
    except KeyboardInterrupt:
        _tell("interrupted; what was under way is taken down")
        return _INTERRUPTED
    except BrokenPipeError:
        # Who reads has left, as head(1) does. What is still buffered must not raise again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _WRONG


def _run(options: argparse.Namespace) -> int:
    if options.command == "image":
        return _image()
    if options.command == "prune":
        return _prune()
    chosen = [] if options.command == "audit" else _chosen(options.case)
    if options.command != "audit" and not chosen:
        return _USAGE
    if options.command in ("record", "verify", "audit"):
        wanted = {variant.shell for _, variant in chosen} if options.command != "audit" else {SHELLS[0]}
        problem = _possible([options.shell] if options.shell else sorted(wanted))
        if problem is not None:
            _tell(problem)
            return _IMPOSSIBLE
    if options.command == "audit":
        return _audit(options)
    if options.command == "record":
        return _record(chosen, options)
    if options.command == "verify":
        return _verify(chosen, options)
    for control, variant in chosen:
        case = f"{control.id}/{variant.name}"
        if options.command == "list":
            print(f"{variant.truth:7} {case}  {variant.why}")
        else:
            where = (options.corpus, options.labels)
            done = draft(control, variant, *where, options.by, options.todo, options.place)
            print(f"{case}: {done}", flush=True)
    return _DONE


if __name__ == "__main__":
    sys.exit(main())
