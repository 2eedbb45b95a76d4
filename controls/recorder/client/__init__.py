"""The recorder's MCP client: the official SDK where it is installed, a small one of our own where it is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from controls.recorder.client.http import HttpWire, inside, listening
from controls.recorder.client.plain import drive_plain
from controls.recorder.client.plan import Call
from controls.recorder.client.sdk import hold, sdk_version
from controls.recorder.client.steps import Step
from controls.recorder.client.transcript import Transcript
from controls.recorder.client.wire import StdioWire
from controls.recorder.errors import RecorderError
from controls.recorder.probes import Probes, ended

__all__ = ["Call", "Step", "drive", "drive_http", "driver", "warm_up"]


def driver() -> str:
    """Return what holds a session here, such as ``mcp 1.30.0`` or ``recorder``."""
    return sdk_version() or "recorder"


def drive_http(
    keeper: int,
    url: str,
    transcript: Path,
    seconds: float = 30.0,
    probes: Probes | None = None,
    *,
    thorough: bool = False,
    calls: Sequence[Call] = (),
    tag: str = "",
) -> list[Step]:
    """Hold one session over streamable HTTP with a server in the cell; see ``drive``.

    Args:
        keeper: process id in the server's network namespace.
        url: the server's endpoint, by address.
        transcript: as for ``drive``.
        seconds: as for ``drive``; the time until the server listens is part of it.
        probes: as for ``drive``.
        thorough: as for ``drive``.
        calls: as for ``drive``.
        tag: as for ``drive``.

    Raises:
        RecorderError: there is no SDK, or as for ``drive``.
    """
    if sdk_version() is None:
        raise RecorderError("a session over HTTP needs the official SDK (pip install mcp)")
    end = time.monotonic() + seconds
    while not listening(keeper, url):
        if time.monotonic() > end or (probes is not None and ended(probes.report, 0.0)):
            transcript.touch()
            if not thorough:
                raise RecorderError("the server did not listen in time")
            return [Step("listen", "no-answer", "the server did not listen in time")]
        time.sleep(0.02)

    async def held() -> list[Step]:
        with transcript.open("wb") as out:
            wire = HttpWire(url, Transcript(out), probes.report if probes is not None else None)
            left = end - time.monotonic()
            return await hold(wire, left, thorough=thorough, given=calls, tag=tag, probes=probes)

    return _judged(inside(keeper, lambda: asyncio.run(held())), thorough=thorough)


def _judged(steps: list[Step], *, thorough: bool) -> list[Step]:
    failed = next((step for step in steps if step.failed and step.name != "shutdown"), None)
    if failed is not None and not thorough:
        raise RecorderError(failed.detail)
    return steps


def warm_up() -> None:
    """Import the SDK, where there is one: it takes a second, and ten in an emulated guest."""
    if sdk_version() is not None:
        import mcp.client.session
        import mcp.shared.message  # noqa: F401


def drive(
    to_server: IO[bytes],
    from_server: IO[bytes],
    transcript: Path,
    seconds: float = 30.0,
    probes: Probes | None = None,
    *,
    thorough: bool = False,
    calls: Sequence[Call] = (),
    tag: str = "",
) -> list[Step]:
    """Hold one session: initialize, list tools (all pages), prompts and resources, call every tool, close.

    Args:
        to_server: the server's standard input; closed at the end.
        from_server: its standard output.
        transcript: file the messages are written to.
        seconds: time for the whole session.
        probes: probes that the session has its part in: a ping after its start and one before its end.
        thorough: call every tool twice with arguments made from its schema, get prompts and read resources, and send
            one call that is wrong.
        calls: calls to make instead of those.
        tag: the canary tag of the run.

    Returns:
        What became of every step.

    Raises:
        RecorderError: the session is not thorough, and the server does not answer as an MCP server would.
    """
    if sdk_version() is None:
        return drive_plain(to_server, from_server, transcript, seconds, probes, thorough=thorough, calls=calls, tag=tag)

    async def held() -> list[Step]:
        with transcript.open("wb") as out:
            wire = StdioWire(to_server, from_server, Transcript(out), probes.report if probes is not None else None)
            return await hold(wire, seconds, thorough=thorough, given=calls, tag=tag, probes=probes)

    try:
        steps = asyncio.run(held())
    finally:
        to_server.close()
    return _judged(steps, thorough=thorough)
