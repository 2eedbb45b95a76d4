"""The process tree: programs, parents, and where the audited program begins."""

from __future__ import annotations

import pytest
from hand_sources import where
from made_events import S, execed

from mcpdetect.correlate import processes as module
from mcpdetect.correlate.processes import Processes
from mcpdetect.model.event import Event, ProcessExecFailed, ProcessExit, ProcessStart
from mcpdetect.model.trace import Run


def tree(*events: Event, entry: str | None = None) -> Processes:
    processes = Processes(Run(entry=entry))
    for event in events:
        processes.on_event(event)
    return processes


def cloned(line: int, child: str, parent: str) -> ProcessStart:
    return ProcessStart(where(line), S, "clone", 1, how="clone", process=child, parent=parent)


def test_a_child_runs_its_parents_program_until_its_own_exec() -> None:
    start = execed(1, "/usr/bin/node", "node", "server.js", process="7")
    processes = tree(start, cloned(2, "8", "7"))
    assert (processes.program("8"), processes.command("8")) == ("/usr/bin/node", "node server.js")
    processes.on_event(execed(3, "/bin/cat", "cat", "x", process="8"))
    assert (processes.program("8"), processes.program("7")) == ("/bin/cat", "/usr/bin/node")
    assert [item.id for item in processes.lineage("8")] == ["8", "7"]


def test_a_childs_own_lines_may_come_before_the_line_that_names_its_parent() -> None:
    processes = tree(execed(1, "/bin/sh", process="7"), execed(2, "/bin/ls", process="8"), cloned(3, "8", "7"))
    assert [item.id for item in processes.lineage("8")] == ["8", "7"]
    assert processes.program("8") == "/bin/ls"


def test_a_program_without_a_path_is_never_named_by_its_arguments() -> None:
    start = ProcessStart(
        where(1), S, "execveat", 0, executable=None, argv=["[kworker/0:0]"], origin="memfd", process="7"
    )
    assert tree(start).program("7") == "(memfd)"


def test_a_loop_of_parents_ends() -> None:
    processes = tree(cloned(1, "8", "7"), cloned(2, "7", "8"))
    assert [item.id for item in processes.lineage("8")] == ["8", "7"]
    assert processes.program("8") is None


def test_the_audited_program_begins_at_its_entry_only_once() -> None:
    processes = tree(execed(1, "/usr/bin/runc", t=5), entry="/usr/bin/node")
    assert (processes.entered, processes.entered_ns) == (False, None)
    processes.on_event(execed(2, "/usr/bin/node", t=9))
    processes.on_event(execed(3, "/usr/bin/node", t=20))
    assert (processes.entered, processes.entered_ns) == (True, 9)


def test_without_an_entry_everything_is_the_programs() -> None:
    assert (tree().entered, tree().entered_ns) == (True, None)


def test_failed_starts_and_ends_are_kept() -> None:
    failed = ProcessExecFailed(
        where(2), S, "execve", None, "ENOENT", executable="/usr/bin/sudo", argv=["sudo"], process="7"
    )
    processes = tree(execed(1, "/bin/sh"), failed, ProcessExit(where(3), S, process="7", code=0))
    assert processes.failed == [failed]
    ended = processes.get("7")
    assert ended is not None
    assert ended.ended


def test_unknown_processes_are_nobody() -> None:
    processes = tree()
    assert (processes.get(None), processes.program("9"), processes.command("9")) == (None, None, None)


def test_processes_beyond_all_room_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROCESSES", 2)
    processes = tree(*(execed(n, "/bin/true", process=str(n)) for n in range(5)))
    assert (processes.overflow, processes.program("4")) == (3, None)
