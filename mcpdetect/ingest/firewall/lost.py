"""Lines in which a kernel or a log daemon says that it left lines out."""

from __future__ import annotations

import re

__all__ = ["lost_lines"]

_SAYINGS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    # net_ratelimit: 37 callbacks suppressed
    (
        re.compile(
            rb"(?:net_ratelimit|__ratelimit|printk\w*+|(?:nf|nft|ipt|ip6t|xt)_\w++): (\d{1,18}) callbacks suppressed"
        ),
        "the kernel's rate limit left lines out",
    ),
    # printk: 37 messages suppressed.
    (re.compile(rb"printk: (\d{1,18}) messages suppressed"), "the kernel's rate limit left lines out"),
    # ** 37 printk messages dropped **
    (re.compile(rb"\*\* (\d{1,18}) printk messages dropped"), "the kernel's ring buffer overran"),
    # imjournal: 1198 messages lost due to rate-limiting (20000 allowed within 600 seconds)
    (re.compile(rb"imjournal: (\d{1,18}) messages lost due to rate-limiting"), "rsyslog's rate limit left lines out"),
    # imjournal: begin to drop messages due to rate-limiting
    (re.compile(rb"im(?:journal|klog): begin to drop messages"), "rsyslog's rate limit left lines out"),
    # Suppressed 7124 messages from kernel
    (re.compile(rb"Suppressed (\d{1,18}) messages from (?:kernel|/?+$)"), "journald's rate limit left lines out"),
    # Missed 12 kernel messages
    (re.compile(rb"Missed (\d{1,18}) kernel messages"), "journald read the kernel's messages too late"),
    # /dev/kmsg buffer overrun, some messages lost.
    (re.compile(rb"/dev/kmsg buffer overrun"), "journald read the kernel's messages too late"),
)


def lost_lines(message: bytes) -> tuple[int, str] | None:
    """Return how many lines a message says were lost (1 where it does not say) and a sentence, None for any other."""
    for pattern, sentence in _SAYINGS:
        if match := pattern.match(message):
            return (int(match[1]) if pattern.groups else 1) or 1, sentence
    return None
