"""Folders whose recorder wrote ``meta.json`` instead of a manifest: one run of a real server each."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.manifest import Bundle, BundleEvidence
from mcpdetect.ingest.strictjson import fail, load_json
from mcpdetect.model.trace import Run
from mcpdetect.model.vocabulary import Channel

__all__ = ["META_NAME", "load_real_meta"]

META_NAME = "meta.json"
"""Name of the file that makes a folder one of these."""

_RESOLVER = "10.200.0.1"
"""The internet end of that recorder's wire, where its dnsmasq listened."""
_SLACK_NS = 2_000_000_000
"""The watchers were stopped after the target; the file states no time for it."""


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    channel: Channel
    format: str
    tool: str
    scope: str
    options: list[str] = field(default_factory=list)


_FILES = (
    _File("trace.log.zst", "syscalls", "strace", "strace", "process tree of the target"),
    _File("capture.pcap", "packets", "pcap", "tcpdump", "eth0 of the server namespace"),
    _File("lo.pcap", "packets", "pcap", "tcpdump", "loopback"),
    _File("dnsmasq.log", "dns", "dnsmasq", "dnsmasq", f"resolver {_RESOLVER}", ["--log-queries=extra"]),
    _File("mcp.jsonl", "mcp", "mcp-ndjson", "recorder", "standard input and output of the target"),
)


def load_real_meta(path: Path) -> Bundle:
    """Read a run by its folder or its ``meta.json``. A file that is not there is a channel that was not recorded.

    The planted values are not in the file in a form that says where they lie: the bundle gives the run's ``tag``, from
    which a secrets file makes them.

    Raises:
        ConfigError: naming file, JSON place, value and cause.
    """
    file = path / META_NAME if path.is_dir() else path
    name = str(file)
    data = load_json(file, name, exact_numbers=True)
    if not isinstance(data, dict):
        fail(name, "", "must be an object", data)
    argv = _strings(data, "argv", name)
    options = _strings(data, "strace_opts", name)
    if not argv:
        fail(name, "/argv", "names no program", argv)
    mode = data.get("mode")
    if not isinstance(mode, str):
        fail(name, "/mode", "must be text", mode)
    begin = _ns(data, "t_start", name)
    total = _ns(data, "t_total", name) if "t_total" in data else 0
    end = begin + total + _SLACK_NS
    if total < 0:
        fail(name, "/t_total", "a run cannot take less than no time", data.get("t_total"))
    status = data.get("strace_rc")
    root = file.parent
    bundle = Bundle(
        root=root,
        run=Run(
            id="/".join(root.resolve().parts[-2:]),
            target=argv,
            mode="open" if mode == "open" else "denied",
            denial=None if mode == "open" else mode,
            entry=argv[0],
            started_ns=_ns(data, "t_exec", name) if "t_exec" in data else begin,
            ended_ns=begin + total if total else None,
            resolvers=[_RESOLVER],
            declared=True,
        ),
        tag=data["canary_tag"] if isinstance(data.get("canary_tag"), str) else None,
    )
    for one in _FILES:
        target = root / one.name
        if not target.is_file():
            continue
        # strace that was itself killed lost its tail; -15 is SIGTERM.
        complete = isinstance(status, int) and status >= 0 if one.channel == "syscalls" else bool(total)
        declared = Declared(
            tool=one.tool,
            options=options if one.channel == "syscalls" else list(one.options),
            begin_ns=begin,
            end_ns=end if total else None,
            complete=complete,
            scope=one.scope,
        )
        bundle.evidence.append(BundleEvidence(target, one.name, one.channel, one.format, declared))
    if not bundle.evidence:
        fail(name, "", "there is no evidence beside it", cause="the folder was copied in part")
    return bundle


def _strings(data: dict[str, Any], key: str, name: str) -> list[str]:
    value = data.get(key)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        fail(name, f"/{key}", "must be a list of texts", value)
    return list(value)


def _ns(data: dict[str, Any], key: str, name: str) -> int:
    """Return epoch seconds such as ``1796041192.1537764`` as nanoseconds, exactly as written."""
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | str):
        fail(name, f"/{key}", "must be a number of seconds", value)
    try:
        number = Decimal(value)
    except InvalidOperation:
        fail(name, f"/{key}", "must be a number of seconds", value)
    if not -(10**11) < number < 10**11:
        fail(name, f"/{key}", "is no time in seconds", value)
    return int(number * 1_000_000_000)
