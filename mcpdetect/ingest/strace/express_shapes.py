"""Parts of the patterns of common calls.

They are for lines whose paths hold no backslash: no string of a path holds a quote, no path a bracket. A class
of one character is several times faster than any other.
"""

from __future__ import annotations

__all__ = ["AT_CWD", "DURATION", "ERROR", "FIELDS", "FILE"]

AT_CWD = r'AT_FDCWD(?:<(/[^>]*+)>)?+, "([^"]*+)", '
"""``AT_FDCWD</srv>, "a.js", ``: groups for the directory and the path."""
ERROR = r"-1 (E[A-Z0-9]++) \([^()]*+\)"
"""``-1 ENOENT (No such file or directory)``: a group for the name."""
DURATION = r"(?: <\d++\.\d++>)?+\Z"
"""`` <0.000010>`` at the end of a line."""
FILE = r"<(/[^<>\\]*+)>"
"""``</srv/a.js>``: a group for the path."""
FIELDS = r"(?>[^\"{}<>()\[\]]++|\([^\"{}<>()\[\]]*+\))*+"
"""``st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...``: what stands in a plain structure."""
