"""Detectors for what MCP servers really did, honest about what the evidence could not show."""
