"""The room a target runs in: its own root, processes, user and home; strace stands at the door.

The root is a tmpfs with the distribution's ``/usr`` bound read-only, a small ``/etc``, and nothing else of the
machine. The target is an ordinary user; strace is root in the same process namespace, so pids in the log are the
target's own, and the target can neither read the log nor signal strace.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from controls.recorder.background import Background
from controls.recorder.canaries import HOME
from controls.recorder.errors import RecorderError
from controls.recorder.internet.authority import trust_store
from controls.recorder.limits import Limits
from controls.recorder.probes import Probes, ended, probe_program
from controls.recorder.programs import Program, look, refused
from controls.recorder.world import FOLDERS, World

__all__ = ["CONTROL", "KEYLOG", "MOST_LOG", "STRACE_OPTIONS", "UID", "Room"]

UID = 1000
CONTROL = "/srv/control"
"""Where the control's own programs lie inside the room."""
KEYLOG = "/run/keys/tls-keys.log"
"""Where programs in the room may write the keys of their TLS connections."""
STRACE_OPTIONS = ("-f", "-ttt", "-T", "-yy", "-s", "4096")

MOST_LOG = 512 << 20
"""Longest log of strace; a target that makes a longer one is ended."""
_SAID = 1 << 20
"""Most bytes of standard error that are kept."""

_ETC = {
    "passwd": f"root:x:0:0:root:/root:/bin/sh\ndev:x:{UID}:{UID}:dev:{HOME}:/bin/sh\n",
    "group": f"root:x:0:\ndev:x:{UID}:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "hostname": "cell\n",
    "host.conf": "multi on\n",
}

_PROBE = "/run/probe/probe"
"""Where the probe program lies inside the room; it launches the target when there are probes."""

# $1 stage folder, $2 working directory; then strace with the target. First of all it comes under the limits. Few
# programs, because each start of one costs much in an emulated guest; the mounts are made from a table by one.
_ENTER = r"""
set -eu
stage=$1 folder=$2
shift 2
root=$stage/root
while read -r door; do
  echo 0 >"$door"
done <"$stage/doors"
mount -t tmpfs -o mode=755,nosuid room "$root"
cd "$root"
mkdir usr proc dev dev/shm tmp etc etc/alternatives home home/dev run run/record run/probe srv srv/control \
  root sys var var/tmp old
chmod 700 run/record
chmod 1777 tmp var/tmp dev/shm
ln -s usr/bin usr/sbin usr/lib usr/lib64 .
ln -s /proc/self/fd dev/fd
cp -r "$stage/etc/." /etc/ld.so.cache etc
: >dev/null >dev/zero >dev/full >dev/random >dev/urandom
mount -a -T "$stage/mounts"
echo cell >/proc/sys/kernel/hostname
pivot_root . old
umount -l old
rmdir old
mount -o remount,ro /
cd "$folder"
exec setpriv --no-new-privs -- "$@"
"""


def _mounts(stage: Path, control: Path) -> str:
    """Return the table of the room's mounts (fstab(5))."""
    root = stage / "root"
    rows = [("/usr", "usr", "none", "bind,ro,nosuid"), ("none", "usr/local", "tmpfs", "mode=755,ro")]
    if Path("/etc/alternatives").is_dir():
        rows.append(("/etc/alternatives", "etc/alternatives", "none", "bind"))
    # Java reads its settings there, and does not start without them.
    rows += [(str(path), f"etc/{path.name}", "none", "bind,X-mount.mkdir") for path in Path("/etc").glob("java-*")]
    if (stage / "keys").is_dir():
        rows.append((f"{stage}/keys", "run/keys", "none", "bind,X-mount.mkdir"))
    rows += [(f"/dev/{name}", f"dev/{name}", "none", "bind") for name in ("null", "zero", "full", "random", "urandom")]
    rows += [
        # The processes of others, which are strace and the launcher, are hidden from the target.
        ("proc", "proc", "proc", "hidepid=2"),
        *((f"{stage}/world/{name}", place.removeprefix("/"), "none", "bind") for name, place in FOLDERS.items()),
        (str(control), "srv/control", "none", "bind,ro"),
        (f"{stage}/record", "run/record", "none", "bind"),
        (f"{stage}/probe", "run/probe", "none", "bind,ro"),
    ]
    return "".join(f"{source} {root}/{place} {kind} {options} 0 0\n" for source, place, kind, options in rows)


class Room:
    """The target's surroundings, made in a stage folder.

    Args:
        stage: an empty folder of the recorder.
        control: folder with the control's programs, which the room shows read-only.
        resolver: lines of ``/etc/resolv.conf``.
        hosts: lines of ``/etc/hosts`` besides localhost.
        authority: file of the certificate authority that the room trusts, and no other; None for none at all.
        keylog: there is a file to which programs may write the keys of their TLS connections (``KEYLOG``).

    Attributes:
        home: the target's home.
        world: the files that the target can write.
        limits: what it may take of the machine.
        overran: it was ended because strace's log grew too long.
        log: strace's log.
        keys: what programs wrote to ``KEYLOG``, None without it.
    """

    def __init__(
        self,
        stage: Path,
        control: Path,
        *,
        resolver: Sequence[str],
        hosts: Sequence[str] = (),
        authority: Path | None = None,
        keylog: bool = False,
    ) -> None:
        self._stage = stage
        for name in ("root", "etc", "record", "probe", "world"):
            (stage / name).mkdir(parents=True)
        self._control = control
        for name, text in _ETC.items():
            (stage / "etc" / name).write_text(text)
        (stage / "etc/resolv.conf").write_text("".join(line + "\n" for line in resolver))
        lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost", "127.0.1.1 cell", *hosts]
        (stage / "etc/hosts").write_text("".join(line + "\n" for line in lines))
        (stage / "etc/ssl").mkdir()
        if authority is not None:
            trust_store(authority, stage / "etc/ssl")
        self.keys = stage / "keys" / Path(KEYLOG).name if keylog else None
        if self.keys is not None:
            # The folder is root's: the target can write to the file, and put nothing else in its place.
            self.keys.parent.mkdir()
            self.keys.touch()
            self.keys.parent.chmod(0o755)
            self.keys.chmod(0o666)
        (stage / "mounts").write_text(_mounts(stage, control))
        self.limits = Limits()
        (stage / "doors").write_text("".join(f"{door}\n" for door in self.limits.doors))
        self.world = World(stage / "world")
        self.home = self.world.root / "home"
        (self.home / "project").mkdir()
        self.overran = False
        self.log = stage / "record" / "strace.log"
        self._said = bytearray()
        self._listener: threading.Thread | None = None
        self._watcher: threading.Thread | None = None
        self._probes: Probes | None = None

    def own(self) -> None:
        """Give the home to the target's user. Call it once everything is planted."""
        for folder, names, files in os.walk(self.home):
            for name in (".", *names, *files):
                os.chown(Path(folder) / name, UID, UID, follow_symlinks=False)
        for path in (self._stage, self._stage / "etc", self._stage / "probe"):
            path.chmod(0o755)
        # strace's log lies here: the target must not read it.
        (self._stage / "record").chmod(0o700)

    def start(
        self,
        netns: int,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        options: Sequence[str] = STRACE_OPTIONS,
        folder: str = f"{HOME}/project",
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        probes: Probes | None = None,
        confine: Sequence[str] = (),
    ) -> Background:
        """Start the target under strace.

        Args:
            netns: process id that holds the server's network namespace.
            argv: the target, its program by absolute path.
            environment: the target's whole environment.
            options: strace's options.
            folder: working directory.
            stdin: as for Popen.
            stdout: as for Popen.
            probes: probes to be run around it, under the same strace.
            confine: what sets up a policy on system calls and becomes the room; strace and target stand under it.
        """
        self._probes = probes
        strace = ["/usr/bin/strace", *options, "-o", "/run/record/strace.log"]
        keep: Sequence[int] = ()
        if probes is None:
            strace += ["-u", "dev", "--"]
        else:
            shutil.copyfile(probe_program(), self._stage / "probe/probe")
            (self._stage / "probe/probe").chmod(0o755)
            keep = probes.open()
            nonce = probes.acts["before"].nonce
            strace += ["--", _PROBE, "around", str(UID), nonce, str(keep[0]), str(keep[1]), folder]
        command = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items()), *strace, *argv]
        apart = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child=KILL", "--"]
        around = [*self.world.enter, *apart, *self.limits.prefix(), *confine]
        # A pipe, read all the time: a file of the recorder would show its path in the trace, and a full pipe would
        # hold the target up.
        target = Background(
            "target",
            [*around, "/bin/sh", "-c", _ENTER, "enter", str(self._stage), folder, *command],
            netns=netns,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            keep=keep,
        )
        if probes is not None:
            probes.started()
        if target.process.stderr is not None:
            self._listener = threading.Thread(target=self._listen, args=(target.process.stderr,), daemon=True)
            self._listener.start()
        self._watcher = threading.Thread(target=self._watch, args=(target,), daemon=True)
        self._watcher.start()
        return target

    def _watch(self, target: Background) -> None:
        """Take strace out of the target's limits once it traces, and end a target whose log grows too long."""
        released = False
        while target.process.poll() is None:
            if not released and (strace := self._tracer(target.pid)):
                self.limits.release(strace)
                released = True
            with contextlib.suppress(OSError):
                if self.log.stat().st_size > MOST_LOG:
                    self.overran = True
                    self.limits.seal()
                    self._signal(target.pid, signal.SIGKILL)
            time.sleep(0.05 if released else 0.005)

    @staticmethod
    def _tracer(outer: int) -> int:
        """Return the process id of strace once the target's program runs, 0 before.

        Before that it forks children of its own to try what the kernel can do.
        """
        with contextlib.suppress(OSError):
            first = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
            if first and Path(f"/proc/{first[0]}/comm").read_text() == "strace\n":
                below = Path(f"/proc/{first[0]}/task/{first[0]}/children").read_text().split()
                names = [Path(f"/proc/{child}/comm").read_text() for child in below]
                return int(first[0]) if any(name != "strace\n" for name in names) else 0
        return 0

    @property
    def folders(self) -> dict[Path, str]:
        """The folders that the target can write: from outside, and as the target knows them."""
        return {self.world.root / name: place for name, place in FOLDERS.items()}

    def programs(self, copies: Path | None) -> list[Program]:
        """Return the programs that ran, by strace's log.

        Args:
            copies: folder for copies of those that belong to no package, None for none.
        """
        roots = {place: root for root, place in self.folders.items()} | {CONTROL: self._control}
        return look(self.log, roots, frozenset({_PROBE, "/proc/self/exe"} if self._probes else ()), copies)

    def trouble(self, program: str) -> str | None:
        """Return why the target's program did not start, by strace's log; None where it did, or the log has no execve.

        Args:
            program: its path.
        """
        with self.log.open("rb") as log:
            return refused(log, program)

    def close(self) -> None:
        """Let the files and the limits go; what ran in the room was ended with its process namespace."""
        if self._watcher is not None:
            self._watcher.join(5.0)
        self.world.close()
        self.limits.close()

    def _listen(self, stream: IO[bytes]) -> None:
        with stream:
            while part := stream.read1(65536):  # type: ignore[attr-defined]
                self._said += part[: max(0, _SAID - len(self._said))]

    def said(self) -> str:
        """Return what the room's set-up, strace and the target wrote to standard error, as far as it was kept."""
        if self._listener is not None:
            self._listener.join(2.0)
        return self._said.decode("utf-8", "backslashreplace")

    def processes(self, outer: int) -> list[int]:
        """Return the processes inside the room but the recorder's own: strace, and the launcher where there are probes.

        Args:
            outer: process id of the ``unshare`` around the room.
        """
        try:
            children = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
            if not children:
                return []
            own = {children[0]}
            inside = Path(f"/proc/{children[0]}/ns/pid").readlink()
            if self._probes is not None:
                own.update(Path(f"/proc/{children[0]}/task/{children[0]}/children").read_text().split()[:1])
        except OSError:  # all of it has ended
            return []
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and entry.name not in own:
                try:
                    if (entry / "ns/pid").readlink() == inside:
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    def finish(self, target: Background, seconds: float, before_probe: Callable[[], None] = lambda: None) -> int | None:
        """Wait for the target's end; then signal its processes, never strace, so that the log ends properly.

        Args:
            target: what ``start`` returned.
            seconds: how long it may take.
            before_probe: called when the target has ended and the second probe is about to run.

        Returns:
            The exit status, None when it had to be stopped.

        Raises:
            RecorderError: strace did not end even then.
        """
        if self._probes is None:
            return self._finish(target, seconds)
        end = time.monotonic() + seconds
        over = ended(self._probes.report, seconds)
        while over and time.monotonic() < end and self.processes(target.pid):
            time.sleep(0.01)
        stopped = bool(self.processes(target.pid))
        if stopped:
            self._stop(target.pid)
        before_probe()
        self._probes.let_probe()
        status: int | None
        try:
            status = target.process.wait(10.0)
        except subprocess.TimeoutExpired:
            status = self._finish(target, 0.0)
        return None if stopped else status

    def _signal(self, outer: int, how: signal.Signals) -> None:
        for pid in self.processes(outer):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)

    def _finish(self, target: Background, seconds: float) -> int | None:
        try:
            return target.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        self._stop(target.pid)
        try:
            target.process.wait(2.0)
        except subprocess.TimeoutExpired:
            raise RecorderError("the target could not be stopped") from None
        return None

    def _stop(self, outer: int) -> None:
        """Ask the processes in the room to end, and end those that do not; none may start another meanwhile."""
        self._signal(outer, signal.SIGTERM)
        grace = time.monotonic() + 2.0
        while time.monotonic() < grace and self.processes(outer):
            time.sleep(0.01)
        self.limits.seal()
        grace = time.monotonic() + 10.0
        while time.monotonic() < grace and self.processes(outer):
            self._signal(outer, signal.SIGKILL)
            time.sleep(0.05)
        self.limits.seal(closed=False)  # the second probe starts processes too
