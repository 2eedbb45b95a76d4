"""Recording one job in a cell: what runs in a guest as it does here. Nothing but the standard library is needed.

It leaves in a folder ``strace.log``, ``dnsmasq.log`` and, as the job asks, ``capture.pcap`` with ``tcpdump.txt``,
``mcp.jsonl``, ``nft.txt``, ``firewall.log`` with ``ulogd.txt``, and ``tls-keys.log``; and ``internet.jsonl``, which is
no evidence.
"""

from __future__ import annotations

import dataclasses
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controls.recorder import packetlog
from controls.recorder.background import Background
from controls.recorder.canaries import HOME, environment_canaries, plant
from controls.recorder.cell import GATEWAY4, Cell
from controls.recorder.client import Call, Step, drive, drive_http, driver
from controls.recorder.confine import confine_command
from controls.recorder.denial import DENIALS
from controls.recorder.difference import document, take
from controls.recorder.errors import RecorderError
from controls.recorder.internet.authority import TRUST, authority_file
from controls.recorder.job import Captured, Job
from controls.recorder.options import clock_options
from controls.recorder.probes import Probes, cache_folder
from controls.recorder.room import KEYLOG, MOST_LOG, Room
from controls.recorder.tools import scratch, version_of
from mcpdetect.model.probe_acts import Phase, ProbeActs

__all__ = ["capture"]

_KEYLOG = {"SSLKEYLOGFILE": KEYLOG, "NODE_OPTIONS": f"--tls-keylog={KEYLOG}"}
"""How OpenSSL's users (Python, curl) and Node are asked for the keys of their TLS connections."""
_LEAP_NS = 50_000_000
"""How far the time of day may be from the time that passed."""
_GRACE = 5.0
"""How long a server may take to end once its input is closed, at least."""


def capture(
    job: Job,
    programs: Path,
    watch: Path,
    done: Callable[[Captured], None] = lambda captured: None,
    *,
    wire: tuple[str, str] | None = None,
) -> Captured:
    """Record one job.

    Args:
        job: what to record.
        programs: folder with the control's programs, built.
        watch: an empty folder for what is recorded.
        done: called when all is recorded and written, before the cell is torn down.
        wire: two interfaces of this machine that are joined already and become the cell's wire.

    Raises:
        RecorderError: anything that makes the recording worthless.
    """
    with tempfile.TemporaryDirectory(prefix=scratch("cell")) as stage:
        room = Room(
            Path(stage),
            programs,
            resolver=[f"nameserver {GATEWAY4}", *job.resolver],
            hosts=job.hosts,
            authority=authority_file(cache_folder()),
            keylog=job.keylog,
        )
        probes = None
        if job.nonces is not None:
            probes = Probes({phase: ProbeActs(phase, nonce) for phase, nonce in job.nonces.items()})
        try:
            return _captured(job, room, watch, probes, done, wire)
        finally:
            room.close()
            if probes is not None:
                probes.close()


def _captured(
    job: Job,
    room: Room,
    watch: Path,
    probes: Probes | None,
    done: Callable[[Captured], None],
    wire: tuple[str, str] | None,
) -> Captured:
    positions = {one.path: one.offset for one in plant(room.home, job.tag) if one.path and one.offset is not None}
    room.own()
    # The first look sees the first probe's mark, which is gone before the target begins.
    first = _mark(room, probes, "before")
    before = take(room.folders)
    if first is not None:
        first.unlink()
    variables = {one.variable: one.value for one in environment_canaries(job.tag) if one.variable}
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": HOME,
        "USER": "dev",
        "LANG": "C.UTF-8",
        **TRUST,
        **(_KEYLOG if job.keylog else {}),
        **variables,
        **job.environment,
    }
    notes = [f"the target's clock was shifted by {job.clock} with libfaketime"] if job.clock else []
    steps: list[Step] = []
    clocks = [_clock("opened")]
    with Cell(
        watch,
        denial=job.denial,
        ipv6=job.ipv6,
        dns=job.dns,
        names=job.names,
        capture=job.capture,
        log=job.log,
        probes=probes,
        wire=wire,
    ) as cell:
        cell.probe("before")
        started = time.time_ns()
        pipe = subprocess.PIPE if job.mcp and job.url is None else subprocess.DEVNULL
        target = room.start(
            cell.keeper,
            job.argv,
            environment,
            options=[*job.options, *clock_options(job.clock)],
            folder=job.folder,
            stdin=pipe,
            stdout=pipe,
            probes=probes,
            confine=confine_command(DENIALS[job.denial].confine) if job.denial else (),
        )
        try:
            if job.mcp:
                steps = _talk(job, target, cell.keeper, watch, probes)
                failed = next((one for one in steps if one.failed and one.name != "shutdown"), None)
                if failed is not None:
                    notes.append(f"the session failed: {failed.name}: {failed.detail}")
            # A server whose input is closed has been told to end; one that stays is told otherwise, soon.
            patience = max(_GRACE, job.seconds / 8) if job.mcp and job.thorough else job.seconds
            if job.url is not None:  # it has no input that could be closed
                patience = 0.0
            status = room.finish(target, patience, lambda: cell.probe("after"))
        except RecorderError as error:
            raise RecorderError(f"{job.case}: {error}\n{room.said()}") from error
        finally:
            target.stop()
        ended = time.time_ns()
        if not room.log.exists() or not room.log.stat().st_size:
            raise RecorderError(f"{job.case}: strace wrote nothing:\n{room.said()}")
        if (trouble := room.trouble(job.argv[0])) is not None:
            raise RecorderError(f"{job.case}: {trouble}")
        cell.settle()
        counted = cell.counters() if job.counters else None
        cell.close_watchers()
        clocks.append(_clock("closed"))
        second = _mark(room, probes, "after")
        after = take(room.folders, before)
        (watch / "files.json").write_text(document(before, after, room.folders))
        # A look that is not whole may have missed a mark, which its loss tells already.
        if probes is not None and second is not None and before.whole and after.whole:
            for channels in probes.reached.values():
                channels.append("files")
        programs = [dataclasses.asdict(one) for one in room.programs(watch if job.binaries else None)]
        notes += [*_clock_notes(*clocks), *room.limits.notes()]
        if room.overran:
            notes.append(f"the target was ended because strace's log grew beyond {MOST_LOG >> 20} MB")
        shutil.move(room.log, watch / "strace.log")
        if room.keys is not None and room.keys.stat().st_size:
            shutil.move(room.keys, watch / "tls-keys.log")
        elif room.keys is not None:
            notes.append("no program of the run kept the keys of its TLS connections")
        if counted is not None:
            (watch / "nft.txt").write_text(counted)
        if job.log and not packetlog.logs(watch):
            notes.append("no firewall of the run logged a packet")
        captured = Captured(
            opened_ns=clocks[0]["realtime_ns"],
            started_ns=started,
            ended_ns=ended,
            closed_ns=clocks[1]["realtime_ns"],
            exit=status,
            kernel=platform.release(),
            machine=platform.machine(),
            versions={
                **{name: version_of(name) for name in job.tools},
                **({"driver": driver()} if job.mcp else {}),
            },
            reached=probes.reached if probes is not None else {},
            notes=notes,
            programs=programs,
            positions=positions,
            session=[dataclasses.asdict(one) for one in steps],
            clocks=clocks,
        )
        done(captured)
    return captured


def _clock(at: str) -> dict[str, Any]:
    """Return a reading of the clocks, as ``ManifestClock``."""
    return {"at": at, "realtime_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns()}


def _clock_notes(opened: dict[str, Any], closed: dict[str, Any]) -> list[str]:
    """Return a note where the time of day was set meanwhile: the times of all logs leap with it."""
    passed = closed["monotonic_ns"] - opened["monotonic_ns"]
    leap = closed["realtime_ns"] - opened["realtime_ns"] - passed
    if abs(leap) <= _LEAP_NS + passed // 1000:  # a clock that is slewed runs wrong by half of that
        return []
    return [f"the machine's clock was set by {leap / 1e9:+.3f} s while the run was recorded"]


def _mark(room: Room, probes: Probes | None, phase: Phase) -> Path | None:
    """Make the mark of a probe for the look at the files; return it, None without probes or room for it."""
    if probes is None:
        return None
    (folder,) = (folder for folder, place in room.folders.items() if place == "/tmp")
    path = folder / Path(probes.acts[phase].mark).name
    try:
        path.touch(mode=0o600, exist_ok=False)
    except OSError:
        return None  # the target has used up what its file system can hold
    return path


def _talk(job: Job, target: Background, keeper: int, watch: Path, probes: Probes | None) -> list[Step]:
    """Hold the session; where a real server is recorded, one that fails is part of the record."""
    calls = [Call(**one) for one in job.calls]
    place = watch / "mcp.jsonl"
    if job.url is not None:
        return drive_http(keeper, job.url, place, job.seconds, probes, thorough=job.thorough, calls=calls, tag=job.tag)
    to, back = target.process.stdin, target.process.stdout
    if to is None or back is None:
        return []
    return drive(to, back, place, job.seconds, probes, thorough=job.thorough, calls=calls, tag=job.tag)
