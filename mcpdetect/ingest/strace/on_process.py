"""Births, execs, working directories: clone, execve, chdir and their relatives."""

from __future__ import annotations

import re
from typing import Literal

from mcpdetect.ingest.strace.call import Call
from mcpdetect.ingest.strace.recorder import Recorder
from mcpdetect.ingest.strace.state import Birth, Thread
from mcpdetect.ingest.strace.values import descriptor, items, number, string_in, text_in
from mcpdetect.model.event import ProcessExecFailed, ProcessStart

__all__ = ["begin_clone", "on_chdir", "on_clone", "on_exec", "on_exit_group", "on_fchdir", "on_identity"]

# clone(child_stack=NULL, flags=CLONE_VM|SIGCHLD, ...)   clone3({flags=CLONE_VM|..., exit_signal=0}   flags=0x3d0f00
_FLAGS = re.compile(r"flags=([^,} ]++)(?: /\* ([^* ]++) \*/)?+", re.ASCII)
# linux/sched.h
_BITS = {
    0x100: "CLONE_VM",
    0x200: "CLONE_FS",
    0x400: "CLONE_FILES",
    0x800: "CLONE_SIGHAND",
    0x2000: "CLONE_PTRACE",
    0x4000: "CLONE_VFORK",
    0x8000: "CLONE_PARENT",
    0x10000: "CLONE_THREAD",
    0x20000: "CLONE_NEWNS",
    0x800000: "CLONE_UNTRACED",
    0x2000000: "CLONE_NEWCGROUP",
    0x4000000: "CLONE_NEWUTS",
    0x8000000: "CLONE_NEWIPC",
    0x10000000: "CLONE_NEWUSER",
    0x20000000: "CLONE_NEWPID",
    0x40000000: "CLONE_NEWNET",
}
# 0x7ffc8494a070 /* 38 vars */      /* 1 var */
_VARS = re.compile(r"0x[0-9a-f]++ /\* (\d{1,9}) vars? \*/\Z", re.ASCII)
# 616724 /* 12 in strace's PID NS */
_Origin = Literal["memfd", "deleted", "descriptor"]
_TRANSLATED = re.compile(r"/\* (\d{1,7}) in strace's PID NS \*/", re.ASCII)


def _clone_flags(name: str, text: str) -> list[str]:
    if name == "vfork":
        return ["CLONE_VFORK", "CLONE_VM"]
    if name == "fork":
        return []
    match = _FLAGS.search(text)
    if match is None:
        return []
    plain, comment = match.groups()
    code = number(plain)
    if comment is None and code is not None:
        return [name for bit, name in _BITS.items() if code & bit]
    return (comment or plain).split("|")


def begin_clone(name: str, text: str, thread: Thread, line: int, recorder: Recorder) -> Birth:
    """Note the first half of a clone; its child may speak before the second half comes."""
    return recorder.world.begin_birth(thread, frozenset(_clone_flags(name, text)), line)


def on_clone(call: Call, recorder: Recorder, birth: Birth | None = None) -> None:
    """Handle clone, clone3, fork, vfork: a child, or a thread."""
    thread = call.thread
    text = ", ".join(call.arguments)
    flags = _clone_flags(call.name, text)
    if birth is None:
        birth = recorder.world.begin_birth(thread, frozenset(flags), call.where.at)
    if call.result == 0:
        # The child's own return: 1001 <... clone resumed>) = 0
        recorder.world.drop_birth(birth)
        return
    child: Thread | None = None
    if call.result is not None and call.result > 0:
        translated = _TRANSLATED.search(call.note)
        child = recorder.world.end_birth(birth, translated[1] if translated else str(call.result))
        if "CLONE_UNTRACED" in flags and not child.first:
            recorder.untraced(child, call.where, "CLONE_UNTRACED")
        elif not child.first:
            recorder.expect(child, call.where)
    else:
        recorder.world.drop_birth(birth)
    if child is None or "CLONE_THREAD" in flags or not recorder.wants("process.start"):
        return
    recorder.emit(
        ProcessStart(
            call.where,
            call.t_ns,
            call.name,
            call.result,
            how="clone",
            process=child.process.id,
            parent=thread.process.id,
            flags=flags or None,
        )
    )


def on_exec(call: Call, recorder: Recorder) -> None:
    """execve, execveat: another program, or an attempt at one."""
    thread = call.thread
    at = call.name == "execveat"
    executable, origin = _program(call, recorder, at)
    shift = 1 if at else 0
    argv, argv_cut = _strings(call.argument(1 + shift))
    if argv_cut:
        recorder.cut("process.start", call.where)
    if call.error is None:
        if call.ok:
            thread.table.at_exec()
        if recorder.wants("process.start"):
            env, env_count = _environment(call.argument(2 + shift))
            recorder.emit(
                ProcessStart(
                    call.where,
                    call.t_ns,
                    call.name,
                    call.result,
                    how="exec",
                    process=thread.process.id,
                    tid=thread.number,
                    parent=thread.process.parent,
                    executable=executable,
                    argv=argv,
                    argv_cut=argv_cut,
                    env=env,
                    env_count=env_count,
                    origin=origin,
                )
            )
        if call.ok:
            thread.number = None
    elif recorder.wants("process.exec_failed"):
        recorder.emit(
            ProcessExecFailed(
                call.where,
                call.t_ns,
                call.name,
                call.result,
                call.error,
                process=thread.process.id,
                tid=thread.number,
                executable=executable,
                argv=argv,
                argv_cut=argv_cut,
            )
        )


def _program(call: Call, recorder: Recorder, at: bool) -> tuple[str | None, _Origin | None]:
    written = string_in(call.argument(1 if at else 0))
    if written is None:
        return None, None
    thread = call.thread
    if at and not written:
        fd, decoration = descriptor(call.argument(0))
        handle = thread.table.handles.get(fd) if fd is not None else None
        if decoration is not None:
            path: str | None = decoration.path
            memfd = decoration.sort == "memfd"
        else:
            path = handle.path if handle else None
            memfd = handle is not None and handle.sort == "memfd"
        if memfd:
            return path, "memfd"
        if call.argument(0).endswith("(deleted)"):
            return path, "deleted"
        return path, "descriptor"
    base = recorder.base_of(thread, call.argument(0)) if at else thread.directory.cwd
    path, _ = recorder.names.absolute(written, base, thread.directory, thread.table, thread.process.id or "")
    if path.startswith("/memfd:"):
        return path, "memfd"
    if written.startswith(("/proc/", "/dev/fd/")) and "/fd/" in written:
        return (None if path.startswith(("/proc/", "/dev/fd/")) else path), "descriptor"
    return path, None


def _strings(text: str) -> tuple[list[str] | None, bool]:
    if not text.startswith("["):
        return None, False
    found: list[str] = []
    cut = False
    plain = "\\" not in text and text.isascii()
    for part in items(text):
        if plain and len(part) > 1 and part[0] == '"' == part[-1]:
            found.append(part[1:-1])
            continue
        pair = text_in(part)
        if pair is None:
            cut = True  # "..." for more arguments, or a pointer that could not be read
        else:
            found.append(pair[0])
            cut = cut or pair[1]
    return found, cut


def _environment(text: str) -> tuple[list[str] | None, int | None]:
    if text == "NULL":
        return [], 0
    match = _VARS.match(text)
    if match is not None:
        return None, int(match[1])
    return _strings(text)[0], None


def on_chdir(call: Call, recorder: Recorder) -> None:
    """A new working directory; unknown from now on where it cannot be known."""
    written = string_in(call.argument(0))
    if not call.ok or written is None:
        return
    thread = call.thread
    path, _ = recorder.names.absolute(written, thread.directory.cwd, thread.directory, thread.table)
    thread.directory.cwd = path if path.startswith("/") else None


def on_fchdir(call: Call, recorder: Recorder) -> None:
    """fchdir: the directory is a descriptor's."""
    if call.ok:
        call.thread.directory.cwd = recorder.base_of(call.thread, call.argument(0))


def on_exit_group(call: Call, recorder: Recorder) -> None:
    """exit_group, and exit: the process means to end."""
    if call.name == "exit_group" or len(call.thread.process.threads) <= 1:
        call.thread.process.leaving = True


def on_identity(call: Call, recorder: Recorder) -> None:
    """Getpid in a log without pids tells whose log it is."""
    thread = call.thread
    if call.ok and not thread.tid and call.result and call.name == "getpid":
        recorder.world.rename(thread, str(call.result))
