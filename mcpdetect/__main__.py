"""``python -m mcpdetect``: the same program as ``mcpdetect``."""

from mcpdetect.cli.main import run

run()
