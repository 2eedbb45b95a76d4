"""Checks needs, feeds every event once, collects findings, verdicts and crashes."""
