"""Any bytes, as any kind of evidence: an answer or one clear error, never an exception."""

from __future__ import annotations

import contextlib
import io
import random
import tempfile
from pathlib import Path

import pytest
from cli_evidence import write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpdetect.cli.main import main

OPTIONS = ["strace", "pcap", "firewall", "mcp", "dns"]
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def ended(arguments: list[str]) -> tuple[int, str, str]:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    out.seek(0)
    err.seek(0)
    return code, out.read(), err.read()


def settled(raw: bytes, option: str) -> None:
    """Check one file in every way it can be given."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "evidence"
        file.write_bytes(raw)
        for named in ([f"--{option}", str(file)], [str(file)]):
            for command, answers in (("check", (0, 1)), ("events", (0,))):
                code, out, err = ended([command, *named])
                if code in answers:
                    assert err == ""
                    assert out or command == "events"
                else:
                    assert code == 4
                    assert out == "" or command == "events"
                    assert err.startswith("error: ")


@SLOW
@given(st.binary(max_size=400), st.sampled_from(OPTIONS))
def test_any_bytes(raw: bytes, option: str) -> None:
    settled(raw, option)


@pytest.mark.parametrize("option", OPTIONS)
def test_evidence_with_bytes_changed_cut_and_doubled(option: str, tmp_path: Path) -> None:
    whole = write(tmp_path)[option].read_bytes()
    dice = random.Random(option)  # noqa: S311
    for _ in range(25):
        raw = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            raw[dice.randrange(len(raw))] = dice.randrange(256)
        at = dice.randrange(len(raw))
        settled(bytes(raw), option)
        settled(bytes(raw[:at]) or b"\n", option)
        settled(bytes(raw[:at] + raw[at // 2 :]), option)
