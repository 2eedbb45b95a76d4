"""What a run changed in the files a target can write: created, changed and deleted, with size, mode and hash."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcpdetect.model.text import text_of

__all__ = ["FILES_SCHEMA", "Snapshot", "difference", "document", "take"]

FILES_SCHEMA = "mcpdetect.files/0"
"""Name and version of the format."""
_MOST_FILES = 20_000
_MOST_HASHED = 256 << 20
_TYPES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


@dataclass(frozen=True, slots=True)
class _File:
    """One entry as the file system knows it; ``stamp`` changes whenever the entry does."""

    kind: str
    mode: int
    owner: int
    size: int
    stamp: tuple[int, int, int]
    sha256: str | None
    target: str | None


@dataclass(slots=True)
class Snapshot:
    """The files of a moment: path in the room, as bytes, to what lies there.

    Attributes:
        files: the entries.
        whole: every entry was read.
        hashed: every file was hashed.
    """

    files: dict[bytes, _File]
    whole: bool = True
    hashed: bool = True


def _hash(path: bytes, size: int) -> str | None:
    """Return the sha256 of a plain file, never following a link and never waiting on a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOATIME)
    except OSError:
        return None
    with open(descriptor, "rb") as stream:  # noqa: PTH123
        digest = hashlib.sha256()
        left = size
        while left > 0 and (part := stream.read(min(left, 1 << 20))):
            digest.update(part)
            left -= len(part)
        return digest.hexdigest()


def take(roots: Mapping[Path, str], before: Snapshot | None = None) -> Snapshot:
    """Look at everything below some folders.

    Args:
        roots: folder -> its path in the room.
        before: an earlier look: what was not touched since is not hashed again.
    """
    found = Snapshot({})
    budget = _MOST_HASHED
    # A stack of our own: a target may nest folders deeper than Python recurses, or than a path may be long.
    left = [(os.fsencode(root), shown.encode()) for root, shown in roots.items()]
    while left:
        folder, shown_as = left.pop()
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError:
            found.whole = False
            continue
        for name in names:
            if len(found.files) >= _MOST_FILES:
                found.whole = False
                return found
            path, place = folder + b"/" + name, shown_as + b"/" + name
            try:
                entry = os.lstat(path)
                link = os.fsencode(Path(os.fsdecode(path)).readlink()) if stat.S_ISLNK(entry.st_mode) else None
            except OSError:
                found.whole = False
                continue
            kind = _TYPES.get(stat.S_IFMT(entry.st_mode), "other")
            if kind == "folder":
                left.append((path, place))
            digest = None
            if kind == "file":
                old = before.files.get(place) if before is not None else None
                if old is not None and old.stamp == _stamp(entry) and old.size == entry.st_size:
                    digest = old.sha256
                elif entry.st_size <= budget:
                    digest = _hash(path, entry.st_size)
                    budget -= entry.st_size
                found.hashed = found.hashed and digest is not None
            found.files[place] = _File(
                kind,
                stat.S_IMODE(entry.st_mode),
                entry.st_uid,
                entry.st_size if kind in ("file", "link") else 0,
                _stamp(entry),
                digest,
                text_of(link) if link is not None else None,
            )
    return found


def _stamp(entry: os.stat_result) -> tuple[int, int, int]:
    return entry.st_ino, entry.st_mtime_ns, entry.st_ctime_ns


def _facts(one: _File) -> tuple[object, ...]:
    return (one.kind, one.mode, one.owner, one.size, one.sha256, one.target)


def difference(before: Snapshot, after: Snapshot) -> list[dict[str, object]]:
    """Return what differs, by path: ``path``, ``change`` (created, changed, deleted), and what lies there now.

    A file written with the content it had is ``changed`` all the same, as its times tell; a folder is changed only when
    its mode or owner is.
    """
    rows: list[dict[str, object]] = []
    for path in sorted(before.files.keys() | after.files.keys()):
        old, new = before.files.get(path), after.files.get(path)
        if old is not None and new is not None:
            same = _facts(old) == _facts(new)
            if same and (new.kind != "file" or old.stamp[:2] == new.stamp[:2]):
                continue
        if new is None and not after.whole:
            continue  # it may lie among what was not looked at
        one = new or old
        if one is None:
            continue
        rows.append(
            {
                "path": text_of(path),
                "change": "created" if old is None else "deleted" if new is None else "changed",
                "type": one.kind,
                "mode": f"{one.mode:04o}",
                "owner": one.owner,
                "size": one.size,
                "sha256": one.sha256,
                "target": one.target,
            }
        )
    return rows


def document(before: Snapshot, after: Snapshot, roots: Mapping[Path, str]) -> str:
    """Return the evidence file: one JSON document, one entry a line."""
    head = {
        "schema": FILES_SCHEMA,
        "roots": sorted(roots.values()),
        "whole": before.whole and after.whole,
        "hashed": before.hashed and after.hashed,
    }
    rows = ",\n".join(json.dumps(row) for row in difference(before, after))
    return json.dumps(head)[:-1] + ', "entries": [\n' + rows + "\n]}\n"
