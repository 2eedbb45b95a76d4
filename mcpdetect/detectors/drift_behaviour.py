"""drift.behaviour: hosts, programs and files that the approved description of a server does not name."""

from __future__ import annotations

from collections.abc import Iterator

from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.correlate.hosts import literal_address, matches
from mcpdetect.correlate.inventory import Inventory
from mcpdetect.data.globs import compile_globs
from mcpdetect.model.place import Where
from mcpdetect.model.result import Finding

__all__ = ["DriftBehaviour"]


class DriftBehaviour(Detector):
    """The server does what its approved description does not name."""

    spec = Spec(
        id="drift.behaviour",
        version=1,
        claim="the server contacted, started and changed nothing but what its approved description names",
        kinds=("process.start",),
        needs=(
            AnyOf("what it starts and changes", Need("syscalls", ("process.start", "file.change"))),
            AnyOf(
                "whom it contacts",
                Need("packets", ("net.flow", "dns.query")),
                Need("syscalls", ("socket.connect", "socket.send")),
            ),
        ),
        facts=(Inventory,),
        requires=("baseline",),
        blind_to=(
            "other data sent to an approved host, other arguments of an approved program",
            "what the server does only when it is asked otherwise, or later",
            "files below /tmp, /var/tmp and /run",
        ),
        complete_run=False,
    )

    def finish(self) -> Iterator[Finding]:
        """Compare the run with the description."""
        baseline = self.context.baseline
        if baseline is None:
            return
        inventory = self.context.fact(Inventory)
        if inventory.overflow:
            self.context.limit("overflow", "more files, programs or definitions than can be kept")
        context = self.context
        named = any(context.watched(channel, "dns.answer") for channel in ("dns", "packets"))
        named = named or context.watched("syscalls", "socket.receive", "data:socket.receive")
        for host, where in inventory.hosts().items():
            if any(matches(pattern, host) for pattern in baseline.hosts):
                continue
            if literal_address(host) is not None and not named:
                context.limit("names-unknown", f"{host}: what it is called was not watched", where=where)
            else:
                yield self._new("host", host, where, "was contacted or asked for", baseline.source)
        for program, where in inventory.children.items():
            if program not in baseline.children:
                yield self._new("program", program, where, "was started", baseline.source)
        approved = compile_globs(baseline.files)
        for path, where in inventory.files.items():
            if approved.fullmatch(path) is None:
                yield self._new("file", path, where, "was changed", baseline.source)

    def _new(self, kind: str, name: str, where: Where, done: str, source: str) -> Finding:
        return self.finding(
            where,
            title=f"the {kind} {name} {done}, which the approved description does not name",
            reason=f"{source} was approved without it: a new version, another input or moment may be behind it.",
            identity=f"{kind}\0{name}",
            level="suspicious" if kind != "file" else "info",
            kind=kind,
            name=name,
        )
