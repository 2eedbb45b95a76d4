"""What every test shares: a skip is loud, and fails where ``MCPDETECT_NO_SKIPS`` is set."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# Whoever starts the tests may state a width: what the commands print must not depend on it.
os.environ.pop("COLUMNS", None)

# A busy machine is no fault of the code: no example fails for the time it took.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

if os.environ.get("MCPDETECT_NO_SKIPS"):

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turn a skipped test into a failed one."""
        report = yield
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} was skipped, and no test may be here: {reason}"
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        collector: pytest.Collector,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Turn a skipped module into a failed one."""
        report = yield
        if report.skipped:
            report.outcome = "failed"
            report.longrepr = f"{collector.nodeid} was skipped, and no test may be here: {report.longrepr}"
        return report
