"""The version, written down once: packaging reads this file, and every trace and report carries it."""

from __future__ import annotations

__all__ = ["GENERATOR", "VERSION"]

VERSION = "0.1.0"
"""The version of this package (PEP 440)."""

GENERATOR = f"mcpdetect {VERSION}"
"""How traces and reports name the program that wrote them."""
