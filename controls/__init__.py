"""Positive controls and the recorder that runs them: never imported by ``mcpdetect``."""
