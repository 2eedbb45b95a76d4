"""Denials that are a policy on the target's own system calls: a small program that sets one up and becomes the target.

It runs outside strace, as a sandbox's own launcher does, so the log begins with the policy in force.
"""

from __future__ import annotations

from pathlib import Path

from controls.recorder.probes import built_program

__all__ = ["LANDLOCK_ABI", "POLICIES", "confine_command", "confine_program"]

POLICIES = ("seccomp-socket", "seccomp-family", "seccomp-connect", "seccomp-send", "landlock")
"""What the program can set up; ``confine.c`` tells which calls each refuses, and how."""
LANDLOCK_ABI = 4
"""The first version of Landlock with rules for TCP (Linux 6.7)."""


def confine_program() -> Path:
    """Return the program, built from its source unless that was done before.

    Raises:
        RecorderError: there is no compiler, or it fails.
    """
    return built_program(Path(__file__).with_name("confine.c"))


def confine_command(policy: str) -> list[str]:
    """Return what to put before a command so that it runs under a policy, nothing for no policy.

    Args:
        policy: one of ``POLICIES``, or empty.

    Raises:
        RecorderError: the program could not be built.
    """
    return [str(confine_program()), policy] if policy else []
