"""What a run left behind in the file system."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from mcpdetect.model.event import Event
from mcpdetect.model.vocabulary import Channel

__all__ = ["FileDifference"]


@dataclass(slots=True)
class FileDifference(Event):
    """A file that was not the same after the run as before it. Who changed it, and when, this evidence does not tell.

    Attributes:
        path: its absolute path.
        change: ``created``, ``changed`` or ``deleted``.
        type: ``file``, ``folder``, ``link``, ``fifo``, ``socket``, ``device`` or ``other``.
        mode: its permissions in octal, four digits.
        owner: its owner's user id.
        size: its length in bytes; 0 for what has none.
        sha256: of its content in hexadecimal, None where it has none or was not read.
        target: what a symbolic link points to.
    """

    kind: Literal["file.difference"] = field(default="file.difference", kw_only=True)
    channel: ClassVar[Channel] = "files"
    path: str = ""
    change: Literal["created", "changed", "deleted"] = "changed"
    type: Literal["file", "folder", "link", "fifo", "socket", "device", "other"] = "file"
    mode: str = "0000"
    owner: int = 0
    size: int = 0
    sha256: str | None = None
    target: str | None = None
