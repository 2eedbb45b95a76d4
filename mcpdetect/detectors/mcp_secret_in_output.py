"""mcp.secret-in-output: planted values, or strings of a credential's shape, that the server gives to the agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcpdetect.contract import AnyOf, Context, Detector, Need, Spec
from mcpdetect.correlate.calls import Calls
from mcpdetect.correlate.credentials import credentials
from mcpdetect.correlate.disguises import FORMS, Disguises
from mcpdetect.correlate.explain import level_with, named_file
from mcpdetect.correlate.text.said import Said, said
from mcpdetect.model.event import Event
from mcpdetect.model.mcp import McpMessage
from mcpdetect.model.result import Explanation, Finding

__all__ = ["McpSecretInOutput"]


class McpSecretInOutput(Detector):
    """A secret that came back to the agent in what the server says."""

    spec = Spec(
        id="mcp.secret-in-output",
        version=1,
        claim="nothing that the server said to the agent holds a planted value or a string of a credential's shape",
        kinds=("mcp.tool", "mcp.message"),
        needs=(
            AnyOf(
                "what the server says to the agent",
                Need("mcp", ("mcp.message", "data:mcp.message")),
                Need("syscalls", ("mcp.message", "data:mcp.message")),
            ),
        ),
        facts=(Calls,),
        blind_to=(
            "encryption, and encodings other than " + ", ".join(FORMS),
            "a planted value of fewer than 8 bytes, or only a part of one",
            "pictures and sounds, whose bytes are not kept",
            "credentials of a shape that credentials.yaml does not know",
        ),
        technique="T1552",
        complete_run=False,
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        secrets = context.secrets
        values: list[tuple[str, bytes]] = []
        for canary in secrets.canaries if secrets is not None else ():
            if canary.value is not None:
                name = canary.path or (f"${canary.variable}" if canary.variable else canary.kind)
                values.append((name, canary.value.encode()))
        self._planted = Disguises(values)
        self._paths = {one.path for one in secrets.canaries if one.path is not None} if secrets is not None else set()
        self._calls = context.fact(Calls)
        self._given: list[str] = []
        if not self._planted:
            self.context.limit(
                "not-configured", "no planted values were given: only shapes of credentials are looked for", hides=False
            )
        if self._planted.left_out:
            self.context.limit(
                "short-value", f"too short to look for: {', '.join(self._planted.left_out)}", hides=False
            )

    def on_event(self, event: Event) -> Iterable[Finding]:
        """Search every text of the server; what the client sent it first is no secret any more."""
        if isinstance(event, McpMessage) and event.direction == "c2s" and event.arguments:
            if len(self._given) < 1000:
                self._given.append(event.arguments)
            return
        for item in said(event):
            yield from self._searched(item)

    def _searched(self, item: Said) -> Iterator[Finding]:
        met = False
        for sighting in self._planted.search(item.text.encode("utf-8", "surrogatepass")):
            met = True
            how = "" if sighting.form == "plain" else f", {sighting.form}"
            explanations = self._asked_for(item, sighting.name)
            yield self.finding(
                item.event,
                title=f"{item.subject} holds the planted value of {sighting.name}{how}",
                reason="What reaches the agent goes on to the model's provider, and to whatever the agent does next. "
                + ("The call asked for the file." if explanations else "No argument of the call named where it was."),
                identity=f"{item.part}\0{item.name}\0{sighting.name}\0{sighting.form}",
                level=level_with(explanations, "accusing" if sighting.form != "plain" else "suspicious"),
                explanations=explanations,
                part=item.part,
                name=item.name,
                pointer=item.pointer,
                planted=sighting.name,
                form=sighting.form,
            )
        if met:
            return
        for found in credentials(item.text):
            if any(item.text[found.start : found.end] in given for given in self._given):
                continue
            yield self.finding(
                item.event,
                title=f"{item.subject} holds a string of the shape of a credential: {found.name}",
                reason=f"It begins with {found.beginning!r}. A real one in a text for the agent is as good as "
                "published; whether it is real, the evidence cannot tell.",
                identity=f"{item.part}\0{item.name}\0{item.pointer}\0{found.name}\0{found.beginning}",
                level="suspicious",
                part=item.part,
                name=item.name,
                pointer=item.pointer,
                shape=found.name,
            )

    def _asked_for(self, item: Said, name: str) -> list[Explanation]:
        """Return why a planted value in an answer may be ordinary: the call's own argument named its file."""
        call = self._calls.answered_by(item.event)
        given = named_file(call.arguments, name) if call is not None and name in self._paths else None
        if call is None or given is None:
            return []
        return [Explanation("caller-argument", f"the caller of tool {call.tool!r} passed {given!r}", f"{call.where}")]
