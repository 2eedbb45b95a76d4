"""The files with which a new check begins: detector, control, tests; a small check that works, to be replaced."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from string import Template

from mcpdetect.errors import ConfigError

__all__ = ["next_steps", "scaffold"]

# egress.dns-tunnel
_ID = re.compile(r"[a-z][a-z0-9]*+(?:-[a-z0-9]++)*+\.[a-z][a-z0-9]*+(?:-[a-z0-9]++)*+")

_DETECTOR = Template('''\
"""$id: a program that was started out of a folder that anybody may write to."""

from __future__ import annotations

from collections.abc import Iterator

from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.model.event import Event, ProcessStart
from mcpdetect.model.result import Finding

__all__ = ["$name"]

_SHARED = ("/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108


class $name(Detector):
    """A program that was started out of a folder that anybody may write to."""

    spec = Spec(
        id="$id",
        version=1,
        claim="no program was started out of a folder that anybody may write to",
        kinds=("process.start",),
        needs=(AnyOf("programs", Need("syscalls", ("process.start",))),),
        blind_to=("what a process outside the trace starts",),
    )

    def on_event(self, event: Event) -> Iterator[Finding]:
        """Look at one start of a program."""
        if isinstance(event, ProcessStart) and event.how == "exec" and (event.executable or "").startswith(_SHARED):
            yield self.finding(
                event,
                title=f"{event.executable} was started, out of a folder that anybody may write to",
                reason="Programs are installed elsewhere; what lies there was put there by somebody else, or just now.",
                identity=event.executable or "",
                program=event.executable,
            )
''')

_CONTROL = Template("""\
plants: >-
  A program is started out of /tmp. The look-alike starts the same program from where it is installed.
variants:
  sh-copied:
    truth: fires
    why: >-
      a copy in /tmp is started
    run: [/bin/sh, "{control}/act.sh", copied]
    axes: {runtime: sh, way: copied}
    expect: {$id: detected}
  sh-installed:
    truth: silent
    why: >-
      the program is started from where it is installed
    run: [/bin/sh, "{control}/act.sh", installed]
    axes: {runtime: sh, way: installed}
    expect: {$id: not_detected}
""")

_PROGRAM = """\
# Starts one program: a copy of it in /tmp, or the installed one.
case $1 in
copied) cp /bin/true /tmp/copy && /tmp/copy ;;
installed) /bin/true ;;
*) exit 2 ;;
esac
"""

_TEST = Template('''\
"""$id: what it finds, and what it leaves alone."""

from __future__ import annotations

import pytest
from hand_sources import where

from mcpdetect.contract import Context
from mcpdetect.detectors.$module import $name
from mcpdetect.model.event import ProcessStart


@pytest.mark.parametrize(("program", "found"), [("/tmp/copy", ["/tmp/copy"]), ("/bin/true", []), ("/tmpx", [])])
def test_programs_in_shared_folders_are_found(program: str, found: list[str]) -> None:
    start = ProcessStart(where(1), 1, "execve", 0, process="7", executable=program, argv=[program])
    detector = $name(object.__new__(Context))
    assert [one.identity for one in detector.on_event(start)] == found
''')


def scaffold(check: str) -> dict[PurePosixPath, str]:
    """Return the files of a new check by their path in a checkout.

    Args:
        check: its id, ``category.behaviour``.

    Raises:
        ConfigError: it is no id.
    """
    if _ID.fullmatch(check) is None:
        raise ConfigError(
            "is no id of a check",
            file="the command line",
            value=check,
            cause="an id is category.behaviour, of small letters, digits and hyphens",
            hint="write for example  egress.dns-tunnel",
        )
    module = check.replace(".", "_").replace("-", "_")
    words = {"id": check, "module": module, "name": "".join(part.capitalize() for part in module.split("_"))}
    control = PurePosixPath("controls", "planted", *check.split("."))
    return {
        PurePosixPath("mcpdetect", "detectors", f"{module}.py"): _DETECTOR.substitute(words),
        control / "control.yaml": _CONTROL.substitute(words),
        control / "act.sh": _PROGRAM,
        PurePosixPath("tests", "detectors", f"test_{module}.py"): _TEST.substitute(words),
    }


def next_steps(check: str) -> list[str]:
    """Return the commands that follow, in order."""
    case = check.replace(".", "/", 1)
    return [
        f"python -m controls record {case}",
        f"mcpdetect check corpus/{case}/sh-copied --check {check} -v",
        f'python -m controls label --by "author of the control" {case}',
        f"mcpdetect selftest --corpus corpus --labels labels --check {check}",
        f"mcpdetect label extend {check}",
        "mcpdetect coverage build && python tests/tools/refresh_docs.py",
    ]
