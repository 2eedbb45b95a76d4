"""What the logs of questions share: they name who asked for what, and never the addresses of an answer."""

from __future__ import annotations

from typing import ClassVar, Literal

from mcpdetect.ingest.dnslog.names import address_of, name_of
from mcpdetect.ingest.loglines import TextLog
from mcpdetect.model.net import DnsAnswer, DnsQuery
from mcpdetect.model.place import Where
from mcpdetect.model.vocabulary import Channel

__all__ = ["QueryLog"]


class QueryLog(TextLog):
    """Base of the logs that hold questions and at most the response code of their answers.

    ``dns.answer`` is never watched: a name's addresses cannot be learned here, so their absence says nothing.
    """

    channel: ClassVar[Channel] = "dns"
    kinds: ClassVar[tuple[str, ...]] = ("dns.query", "dns.answer")
    shows: ClassVar[tuple[str, ...]] = ("dns.query",)
    counted: ClassVar[tuple[str, ...]] = ("queries", "answers", "other")

    def _begin(self) -> None:
        super()._begin()
        self._alive = False

    def _watched(self) -> bool:
        # That a server runs does not say that it logs questions, unless whoever started it says so.
        return self._counts["queries"] > 0 or (self._alive and self._declared is not None)

    def _ask(
        self,
        where: Where,
        t_ns: int | None,
        name: bytes | None,
        record: str,
        *,
        client: str | None,
        port: int | None = None,
        transport: str | None = None,
        escaped: bool = False,
        altered: bool = False,
    ) -> DnsQuery:
        """Return the event of a question; ``name`` is None where the log hides it."""
        self._counts["queries"] += 1
        query = DnsQuery(
            where,
            t_ns,
            type=record,
            seen_in="dns",
            client=client,
            client_port=port,
            transport=transport,
            altered=altered or name is None,
        )
        if name is not None:
            query.name, query.spelled = _shown(name, escaped, altered)
        else:
            self._book.add("name-hidden", "names that the log does not show", where, self.kinds)
        if altered:
            self._book.add(
                "name-altered", "names in which the log replaced bytes, so they compare with none", where, note=True
            )
        return query

    def _answer(
        self,
        where: Where,
        t_ns: int | None,
        name: bytes | None,
        record: str,
        rcode: str,
        *,
        client: str | None,
        transport: str | None = None,
        source: Literal["", "upstream", "policy", "hosts", "cache"] = "",
        escaped: bool = False,
        altered: bool = False,
    ) -> DnsAnswer:
        """Return the event of an answer of which only the response code is known."""
        self._counts["answers"] += 1
        answer = DnsAnswer(
            where,
            t_ns,
            type=record,
            rcode=rcode,
            source=source,
            seen_in="dns",
            client=client,
            transport=transport,
        )
        if name is not None:
            answer.name = _shown(name, escaped, altered)[0]
        return answer

    @staticmethod
    def _port(raw: bytes) -> int | None:
        return int(raw) if raw.isdigit() and len(raw) <= 5 and int(raw) < 65536 else None

    @staticmethod
    def _client(raw: bytes) -> str | None:
        return address_of(raw)


def _shown(raw: bytes, escaped: bool, altered: bool) -> tuple[str, str | None]:
    r"""Return a name and its spelling; the ``?`` of an altered one stays, ``\063`` would be a real one."""
    name, spelled = name_of(raw, escaped=escaped)
    if altered:
        return name.replace("\\063", "?"), spelled.replace("\\063", "?") if spelled is not None else None
    return name, spelled
