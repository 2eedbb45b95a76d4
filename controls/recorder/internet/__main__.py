"""The fake internet's process: ``python -m controls.recorder.internet``, inside the internet's namespace.

The first line of its standard input is its settings; it prints ``ready`` once everything listens. Every later line is
an order (see ``outside``), answered by ``probed``. SIGTERM ends it, with its journal complete. With ``--loaded`` it
loads all that it may need, prints ``loaded``, and only then waits for its settings.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

from controls.recorder.internet.datagrams import Datagrams
from controls.recorder.internet.journal import Journal
from controls.recorder.internet.names import Names, load_names
from controls.recorder.internet.outside import probe
from controls.recorder.internet.settings import DNS_PORT, SINK_PORT, Settings
from controls.recorder.internet.sinks import Sinks
from controls.recorder.internet.streams import TlsServer
from controls.recorder.internet.upstream import upstream

_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_CLONE_NEWNET = 0x40000000  # linux/sched.h
_GRACE = 1.0
"""Seconds in which cut connections write their last line."""


def _ordered() -> None:
    """Take an order from standard input."""
    line = sys.stdin.readline()
    if line:
        probe(line)
        print("probed", flush=True)
    else:
        asyncio.get_running_loop().remove_reader(sys.stdin)


def _listener(family: socket.AddressFamily, port: int) -> socket.socket:
    sock = socket.create_server(("", port), family=family, backlog=1024)
    sock.setblocking(False)
    return sock


async def _main(settings: Settings) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    journal = Journal(Path(settings.journal))

    def fault(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        journal.write("fault", why=f"{context.get('message')}: {context.get('exception')!r}")
        loop.default_exception_handler(context)

    loop.set_exception_handler(fault)
    names = Names(settings.dns, load_names(settings.names))
    sinks = Sinks(names, journal, TlsServer(Path(settings.authority), lambda name: names.find(name).alpn))
    datagrams = Datagrams(names, journal)
    datagrams.open(SINK_PORT)
    await upstream(names, journal, DNS_PORT)
    listening = [asyncio.ensure_future(sinks.listen(_listener(family, SINK_PORT))) for family in _FAMILIES]
    loop.add_reader(sys.stdin, _ordered)
    print("ready", flush=True)
    await over.wait()
    datagrams.close()
    waiting = {*listening, *asyncio.all_tasks()} - {asyncio.current_task()}
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting, timeout=_GRACE)
    journal.close()


def _load() -> None:
    """Import what is otherwise imported once somebody speaks it."""
    from controls.recorder.internet import http1, http2
    from controls.recorder.internet.authority import load

    load()
    print("loaded", len((http1, http2)), flush=True)


def _move(namespace: str) -> None:
    """Move to another network namespace (setns(2); ``os.setns`` came with Python 3.12)."""
    with Path(namespace).open("rb") as file:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")


def _begin(line: str) -> None:
    settings = Settings.of(line)
    if settings.namespace:
        _move(settings.namespace)
        # It may be a copy of a process that began with the same randomness, in a guest that was put back.
        ssl.RAND_add(os.urandom(64), 64.0)
    asyncio.run(_main(settings))


if __name__ == "__main__":
    if sys.argv[1:] == ["--loaded"]:
        _load()
    _begin(sys.stdin.readline())
