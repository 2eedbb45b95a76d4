"""The description of a server that its runs show, for a person to approve."""

from __future__ import annotations

from collections.abc import Sequence

from mcpdetect.contract import AnyOf, Detector, Need, Spec
from mcpdetect.correlate.inventory import Inventory
from mcpdetect.engine.run import run_checks
from mcpdetect.errors import InputError
from mcpdetect.model.inputs import Baseline, BaselineText, BaselineTool
from mcpdetect.model.result import Finding
from mcpdetect.model.trace import TraceSource

__all__ = ["described"]


def _reader(taken: list[Inventory]) -> type[Detector]:
    """Return a detector that judges nothing and puts the inventory of its run into a list."""

    class Reader(Detector):
        """Reads the inventory of one run."""

        spec = Spec(
            id="description.reader",
            version=1,
            claim="nothing",
            kinds=("mcp.tool",),
            needs=(AnyOf("anything", Need("syscalls", ("process.start",))),),
            facts=(Inventory,),
            blind_to=("nothing is judged",),
        )

        def finish(self) -> list[Finding]:
            """Keep what was gathered."""
            taken.append(self.context.fact(Inventory))
            return []

    return Reader


def described(sources: Sequence[TraceSource]) -> Baseline:
    """Return what all the runs together show; the last definition of each thing counts.

    Raises:
        InputError: the evidence cannot be used, or shows nothing to describe.
    """
    found = Baseline()
    definitions: dict[tuple[str, str], BaselineTool] = {}
    sets: dict[str, dict[str, None]] = {"hosts": {}, "children": {}, "files": {}}
    for source in sources:
        taken: list[Inventory] = []
        reader = _reader(taken)
        result = run_checks(source, {reader.spec.id: reader})
        if result.checks[0].verdict == "error":
            raise InputError(
                result.checks[0].reason, file=source.run.id, cause="a fault of mcpdetect: please report it"
            )
        (inventory,) = taken
        found.runs.append(source.run.id)
        for key, tool in inventory.definitions.items():
            texts = [BaselineText(text.pointer, text.text) for text in tool.texts]
            definitions[key] = BaselineTool(tool.part, tool.name, tool.digest, texts)
        sets["hosts"].update(dict.fromkeys(inventory.hosts()))
        sets["children"].update(dict.fromkeys(inventory.children))
        sets["files"].update(dict.fromkeys(inventory.files))
    found.definitions = [definitions[key] for key in sorted(definitions)]
    found.hosts, found.children, found.files = (sorted(sets[name]) for name in ("hosts", "children", "files"))
    if not any((found.definitions, found.hosts, found.children, found.files)):
        raise InputError(
            "the evidence shows nothing that a description could hold",
            file=", ".join(found.runs),
            cause="no listing, no contact, no child and no change was recorded",
            hint="record a whole session, with the system calls and the MCP transcript",
        )
    return found
