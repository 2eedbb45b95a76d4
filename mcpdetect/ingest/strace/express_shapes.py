"""Parts of the patterns of common calls.

They are for lines whose paths hold no backslash: no string of a path holds a quote, no path a bracket. A class
of one character is several times faster than any other.
"""

from __future__ import annotations

__all__ = ["AT", "DEVICE", "DURATION", "ERROR", "FIELDS", "FILE"]

AT = r'(?:AT_FDCWD(?:<(/[^>]*+)>)?+|\d{1,9}<(/[^<>]*+)>), "([^"]*+)", '
"""``AT_FDCWD</srv>, "a.js", ``, ``5</srv>, "a.js", ``: groups for the working directory, the directory, the path."""
ERROR = r"-1 (E[A-Z0-9]++) \([^()]*+\)"
"""``-1 ENOENT (No such file or directory)``: a group for the name."""
DURATION = r"(?: <\d++\.\d++>)?+\Z"
"""`` <0.000010>`` at the end of a line."""
DEVICE = r"(?:<(?:char|block) \d++:\d++>)?+"
"""``<char 1:3>``, after the path of a device."""
FILE = rf"<(/[^<>\\]*+){DEVICE}>"
"""``</srv/a.js>``, ``</dev/null<char 1:3>>``: a group for the path."""
FIELDS = r"(?>[^\"{}<>()\[\]]++|\([^\"{}<>()\[\]]*+\))*+"
"""``st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...``: what stands in a plain structure."""
