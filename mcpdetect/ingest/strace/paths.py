"""Which file a path names, as far as a trace can tell: links, renames, /proc names, and ``..``."""

from __future__ import annotations

from mcpdetect.ingest.strace.state import Directory, Table

__all__ = ["Names"]

_MOST_NAMES = 20_000
_MOST_HOPS = 40  # Linux: ELOOP after 40 symlinks (path_resolution(7))
_MAGIC = ("/proc/", "/dev/")
_SELF = ("self", "thread-self")
_UNKNOWN: frozenset[str] = frozenset()


class Names:
    """The names that a trace's own calls gave to files: symbolic links, hard links, renames, bind mounts.

    Attributes:
        overflow: how many names had to be forgotten because there were too many.
        linked: some file has another name.
    """

    def __init__(self) -> None:
        self._symlinks: dict[str, str] = {}
        self._aliases: dict[str, set[str]] = {}
        self._known: set[str] = set()
        self.overflow = 0
        self.linked = False
        # absolute paths as written of which nothing but a symbolic link or another root could make something else
        self._settled: set[str] = set()
        self._plain: dict[str, bool] = {}
        # of directories: most files lie in few
        self._others: dict[str, frozenset[str] | None] = {}

    def directory(self, path: str) -> None:
        """Note a path that the kernel itself gave: none of its components is a symbolic link."""
        if len(self._known) < _MOST_NAMES:
            self._known.add(path)

    def symlink(self, path: str, target: str) -> None:
        """Note that ``path`` is now a symbolic link with this text."""
        self._room(self._symlinks)
        self._symlinks[path] = target
        self._plain.clear()

    def same(self, old: str, new: str) -> None:
        """Note that ``new`` names what ``old`` names or named: link, rename, bind mount."""
        if old == new:
            return
        self.linked = True
        self._others.clear()
        self._room(self._aliases)
        group = {old} | self._aliases.get(old, set())
        self._aliases.setdefault(new, set()).update(name for name in group if name != new)
        if len(self._aliases[new]) > 64:
            self.overflow += 1
            self._aliases[new] = set(sorted(self._aliases[new])[:64])

    def moved(self, old: str, new: str) -> None:
        """Note a rename: as ``same``, and a symbolic link keeps its text under the new name."""
        text = self._symlinks.pop(old, None)
        if text is not None:
            self.symlink(new, text)
        else:
            self._symlinks.pop(new, None)
        self.same(old, new)

    def gone(self, path: str) -> None:
        """Note that ``path`` was removed."""
        self._symlinks.pop(path, None)

    def aliases(self, path: str | None) -> list[str] | None:
        """Return other names of the same file, those of its directories included; None when there are none."""
        if not self._aliases or path is None:
            return None
        directory, slash, last = path.rpartition("/")
        above = self._others.get(directory, _UNKNOWN)
        if above is _UNKNOWN:
            above = self._names_of(directory)
        own = self._aliases.get(path)
        if own is None and above is None:
            return None
        found = set() if own is None else set(own)
        if above is not None:
            found.update(f"{name}{slash}{last}" for name in above)
        found.discard(path)
        return sorted(found) or None

    def _names_of(self, directory: str) -> frozenset[str] | None:
        """Return other names of a directory, its own directories' names included; None when there are none."""
        found: set[str] = set()
        at = len(directory)
        while at > 0:
            for other in self._aliases.get(directory[:at], ()):
                found.add(other + directory[at:])
            at = directory.rfind("/", 0, at)
        others = frozenset(found) if found else None
        if len(self._others) >= _MOST_NAMES:
            self._others.clear()
        self._others[directory] = others
        return others

    def _room(self, table: dict[str, str] | dict[str, set[str]]) -> None:
        if len(table) >= _MOST_NAMES:
            table.pop(next(iter(table)))
            self.overflow += 1

    def absolute(
        self, written: str, base: str | None, directory: Directory, table: Table, own: str = ""
    ) -> tuple[str, bool]:
        """Return the absolute path that ``written`` names, and whether that is known for certain.

        Args:
            written: the path argument.
            base: the directory it is relative to, None when unknown.
            directory: working and root directory of the process.
            table: its descriptors.
            own: its pid as text, so that ``/proc/<pid>`` is understood.
        """
        if written in self._settled and not directory.root and (not self._symlinks or self._is_plain(written)):
            return written, True
        if written.startswith("/"):
            plain = written
            start = 1
        else:
            if base is None:
                return written, False
            if not written:
                return base, True
            # "../x" below a directory whose name the kernel gave
            plain = f"{base}/{written}" if base != "/" else f"/{written}"
            start = len(base) + 1 if base != "/" else 1
        if (
            "/./" not in plain
            and "/.." not in plain
            and "//" not in plain
            and not plain.startswith(_MAGIC)
            and not plain.endswith(("/", "/."))
            and not directory.root
            and (not self._symlinks or self._is_plain(plain))
        ):
            if plain is written and len(self._settled) < _MOST_NAMES:
                self._settled.add(plain)
            return plain, True
        return self._walk(plain, start, directory, table, own)

    def _is_plain(self, path: str) -> bool:
        """Whether no symbolic link that this trace made is on the way."""
        if path in self._symlinks:
            return False
        directory = path.rpartition("/")[0]
        known = self._plain.get(directory)
        if known is None:
            known = True
            at = len(directory)
            while at > 0 and known:
                known = directory[:at] not in self._symlinks
                at = directory.rfind("/", 0, at)
            if len(self._plain) >= _MOST_NAMES:
                self._plain.clear()
            self._plain[directory] = known
        return known

    def _walk(self, plain: str, start: int, directory: Directory, table: Table, own: str) -> tuple[str, bool]:
        certain = True
        hops = 0
        done: list[str] = []
        firm = 0  # how many leading components are known not to be symbolic links
        if start > 1:
            done = [part for part in plain[:start].split("/") if part]
            firm = len(done)
        todo = [part for part in reversed(plain[start:].split("/")) if part and part != "."]
        if directory.root and start <= 1:
            done = [part for part in directory.root.split("/") if part]
            firm = len(done)
        while todo:
            part = todo.pop()
            if part == "..":
                if done:
                    if len(done) > firm and "/" + "/".join(done) not in self._known:
                        certain = False
                    done.pop()
                    firm = min(firm, len(done))
                continue
            done.append(part)
            target = self._special(done, directory, table, own)
            if target is None and self._symlinks:
                text = self._symlinks.get("/" + "/".join(done))
                if text is not None:
                    hops += 1
                    if hops > _MOST_HOPS:
                        return plain, False
                    done.pop()
                    if text.startswith("/"):
                        done, firm = [], 0
                    todo.extend(part for part in reversed(text.split("/")) if part and part != ".")
                    continue
            if target is not None:
                path, sure = target
                certain = certain and sure
                if not path.startswith("/"):
                    # /proc/self/fd/3 that is a pipe or socket
                    return path, certain and not todo
                done = [part for part in path.split("/") if part]
                firm = len(done)
        return "/" + "/".join(done), certain

    @staticmethod
    def _special(done: list[str], directory: Directory, table: Table, own: str) -> tuple[str, bool] | None:
        """Return what a magic link of /proc or /dev leads to, None when ``done`` is none."""
        head = done[0]
        if head == "proc" and len(done) >= 3 and (done[1] in _SELF or done[1] == own):
            rest = done[2:]
            if rest[:1] == ["task"] and len(rest) >= 2:
                rest = rest[2:]
            if rest == ["root"]:
                return directory.root or "/", True
            if rest == ["cwd"] and directory.cwd is not None:
                return directory.cwd, True
            if len(rest) == 2 and rest[0] == "fd":
                return _descriptor(rest[1], table)
        elif head == "dev":
            # /dev/fd/3 is /proc/self/fd/3, /dev/stdin is /proc/self/fd/0
            if len(done) == 3 and done[1] == "fd":
                return _descriptor(done[2], table)
            if len(done) == 2 and done[1] in _STANDARD:
                return _descriptor(_STANDARD[done[1]], table)
        return None


_STANDARD = {"stdin": "0", "stdout": "1", "stderr": "2"}


def _descriptor(text: str, table: Table) -> tuple[str, bool] | None:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        return None
    handle = table.handles.get(int(text))
    if handle is None or handle.path is None:
        return None
    return handle.path, handle.certain
