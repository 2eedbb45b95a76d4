"""Neither system calls nor the wire alone clear a run (decision 0004)."""

from __future__ import annotations

import pytest
from made_events import calls, check, connect, flows_only, walled

from mcpdetect.model.result import Limit


@pytest.mark.parametrize("missing", ["syscalls", "packets"])
def test_direct_addresses_need_calls_and_the_wire(missing: str) -> None:
    kept = [item for item in (calls(), flows_only()) if item.channel != missing]
    result = check("egress.direct-ip", [], kept)
    assert (result.verdict, [limit.what for limit in result.limits]) == ("not_observable", ["missing-channel"])


def test_denials_need_calls_and_something_outside() -> None:
    result = check("network.blocked", [connect(1)], [calls()])
    assert (result.verdict, result.limits) == (
        "not_observable",
        [Limit("missing-channel", "what became of them outside: no packets evidence; no firewall evidence")],
    )
    for outside in (flows_only(), walled()):
        assert check("network.blocked", [connect(1)], [calls(), outside]).verdict == "not_detected"
