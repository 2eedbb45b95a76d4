"""Hand-made results that reports are tested on."""

from __future__ import annotations

from mcpdetect.model.observation import Loss, Observation
from mcpdetect.model.place import Where
from mcpdetect.model.result import CheckResult, Explanation, Finding, Limit, Result
from mcpdetect.model.trace import Run

START = 1_796_041_192_000_000_000

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202egpj.exe\u2066\r\nVERDICT: \u200bfine\u2028\x9b31m\udc80\x00\x7f"


def observation(
    channel: str = "syscalls", source: str = "trace.log", form: str = "strace", **more: object
) -> Observation:
    values: dict[str, object] = {
        "proof": "declared",
        "begin_ns": START,
        "end_ns": START + 11_200_000_000,
        "complete": True,
        "counts": {"lines": 10_123, "events": 4_002},
    }
    return Observation(channel, source, form, **{**values, **more})  # type: ignore[arg-type]


def finding(number: int = 1, level: str = "suspicious", **more: object) -> Finding:
    values: dict[str, object] = {
        "check": "egress.direct-ip",
        "title": "connected to 203.0.113.9:443",
        "reason": "No DNS answer, server name or hosts file in the evidence gives this address a name, so it was"
        " written into the program or came from elsewhere.",
        "level": level,
        "where": [Where("trace.log", 400 + number), Where("capture.pcap", 10 + number, unit="packet")],
        "process": "38",
        "program": "/usr/bin/node",
        "t_ns": START + number * 1_000_000,
        "facts": {"address": "203.0.113.9", "port": 443, "outcome": "established"},
        "key": "0123456789abcdef",
        "identity": "203.0.113.9:443",
    }
    return Finding(**{**values, **more})  # type: ignore[arg-type]


def check(name: str = "egress.direct-ip", verdict: str = "not_detected", **more: object) -> CheckResult:
    values: dict[str, object] = {
        "check": name,
        "version": 1,
        "title": "Traffic to an address that nothing names",
        "verdict": verdict,
        "proof": "declared",
        "reason": "every destination has a name",
        "examined": 412,
        "blind_to": ["traffic of a process that was not traced"],
    }
    return CheckResult(**{**values, **more})  # type: ignore[arg-type]


def run(name: str = "server-x/open", **more: object) -> Run:
    values: dict[str, object] = {
        "id": name,
        "target": ["/srv/node_modules/.bin/server-x", "--stdio"],
        "mode": "open",
        "started_ns": START - 200_000_000,
        "ended_ns": START + 11_500_000_000,
        "declared": True,
    }
    return Run(**{**values, **more})  # type: ignore[arg-type]


def result(*checks: CheckResult, **more: object) -> Result:
    values: dict[str, object] = {
        "run": run(),
        "observations": [observation()],
        "assurance": "declared",
        "generator": "mcpdetect 0.1.0",
    }
    return Result(checks=list(checks), **{**values, **more})  # type: ignore[arg-type]


def full() -> Result:
    """Return a result with everything in it: each verdict, folding, explanations, limits, losses, notes."""
    dotenv = Explanation(
        "dotenv-upward-search",
        "python-dotenv looks for .env in every folder above the package",
        "https://docs.example/dotenv",
    )
    cut = Limit("string-cut", "trace.log: strings were cut at 512 bytes", True, Where("trace.log", 77), 31)
    return result(
        check("egress.direct-ip", "detected", findings=[finding(n) for n in range(1, 8)], reason="7 findings"),
        check(
            "secrets.canary-read",
            "detected",
            title="A planted secret was read",
            reason="2 findings",
            findings=[
                finding(
                    20,
                    "info",
                    check="secrets.canary-read",
                    title="read /home/dev/.env",
                    reason="A planted file was opened and read.",
                    explanations=[dotenv],
                    where=[Where("trace.log", 902, 907)],
                ),
                finding(
                    30,
                    "accusing",
                    check="secrets.canary-read",
                    title="read /home/dev/.ssh/id_ed25519",
                    reason="Nothing documents or explains why this server reads a private key.",
                    where=[Where("trace.log", 1204)],
                    process="41",
                    program=None,
                ),
            ],
        ),
        check(
            "egress.unexplained-host",
            "not_observable",
            proof="absent",
            examined=0,
            reason="not configured: expectations",
            title="Traffic to a host that nothing documents",
            limits=[Limit("not-configured", "no expectations were given; name them with --expect")],
        ),
        check(
            "secrets.canary-sent",
            "not_observable",
            title="A planted secret left the sandbox",
            reason="trace.log: strings were cut at 512 bytes",
            limits=[cut],
        ),
        check(
            "network.blocked",
            "not_detected",
            title="An attempt to reach a denied network",
            limits=[Limit("no-exit", "trace.log: the log ends while processes run", False)],
        ),
        check(
            "mcp.exfil-instruction",
            "error",
            title="A tool text that asks for data to be sent",
            reason="the detector crashed: KeyError: 'x' at detectors/mcp_exfil_instruction.py:41, reading mcp.jsonl:3",
        ),
        observations=[
            observation(
                losses=[
                    Loss("string-cut", "strings were cut at 512 bytes", 31, Where("trace.log", 77), ["socket.send"])
                ]
            ),
            observation(
                "packets", "capture.pcap", "pcap", counts={"packets": 1_904}, proof="proved", scope="eth0 of the server"
            ),
            observation(
                "dns",
                "dnsmasq.log",
                "dnsmasq",
                clock="none",
                begin_ns=None,
                end_ns=None,
                complete=False,
                counts={"lines": 57, "unparsed": 2},
                losses=[
                    Loss("unparsed", "lines that are no dnsmasq message", 2, Where("dnsmasq.log", 8), ["dns.query"])
                ],
            ),
        ],
        notes=["dnsmasq.log gives no year: its times were not used"],
    )
