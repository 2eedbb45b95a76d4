"""One firewall evidence file of any form: a kernel log, a journal, or an nftables listing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mcpdetect.errors import InputError
from mcpdetect.ingest.adapter import Adapter, Declared
from mcpdetect.ingest.firewall.counters import NftCounters
from mcpdetect.ingest.firewall.journal import JournalLog, is_journal
from mcpdetect.ingest.firewall.kernel import KernelLog
from mcpdetect.ingest.firewall.nft import is_listing
from mcpdetect.ingest.loglines import LineSource
from mcpdetect.model.event import Event
from mcpdetect.model.observation import Observation

__all__ = ["FirewallLog"]

_NOTHING = "an empty log proves nothing: leave the flag out, or give the rules' counters (nft list ruleset)"


class FirewallLog:
    """One file of firewall evidence; its form is found by its content.

    * A kernel log in any form that dmesg, syslog daemons or journalctl write: one ``firewall.drop`` a packet line. A
      retransmission is a line of its own; whoever counts attempts folds equal flows.
    * A journal in JSON (``journalctl -k -o json``).
    * ``nft list ruleset``, as text or JSON: one ``firewall.drop`` a counter, see ``NftCounters``.

    A log without a single packet line shows nothing (``watches`` is empty): rules may be silent.

    Args:
        path: the file, compressed or not.
        name: its name in every place; the path otherwise.
        declared: what a manifest says about it.

    Raises:
        InputError: it cannot be opened, is empty, or is no firewall evidence.
    """

    def __init__(self, path: Path, name: str | None = None, declared: Declared | None = None) -> None:
        try:
            source = LineSource(path, name)
        except InputError as error:
            if error.problem == "is empty":
                error.hint = _NOTHING
            raise
        self._reader: Adapter
        if is_listing(source.head):
            self._reader = NftCounters(None, source, declared=declared)
        elif any(is_journal(line) for line in source.first_lines()[:50]):
            self._reader = JournalLog(source, declared=declared)
        else:
            self._reader = KernelLog(source, declared=declared)

    @property
    def observation(self) -> Observation:
        """What the file can show; complete after ``events`` was read to its end."""
        return self._reader.observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield ``firewall.drop`` and ``unparsed`` events in the order of the file."""
        return self._reader.events(wanted)
