"""The adapter of packet captures: opens the file, gives out its events, and says what it could show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mcpdetect.errors import InputError
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.opener import Stream, open_evidence
from mcpdetect.ingest.pcap.decode import Decoder
from mcpdetect.ingest.pcap.files import NO_TIME, CaptureFile, PcapFile
from mcpdetect.ingest.pcap.ledger import ALL_KINDS, Ledger
from mcpdetect.ingest.pcap.pcapng import MAGIC, PcapngFile
from mcpdetect.ingest.pcap.reading import Reading
from mcpdetect.model.event import Event
from mcpdetect.model.observation import Observation

__all__ = ["PacketCapture"]

_EVERYTHING = frozenset({*ALL_KINDS, "unparsed"})


class PacketCapture:
    """One pcap or pcapng file, compressed or not.

    Args:
        path: the file.
        name: its name in places; the path where None.
        declared: what a manifest says about it.

    Raises:
        UnknownFormat: it is no packet capture, or one of a kind that is not supported.
        InputError: it cannot be opened, or ends within its header.
    """

    def __init__(self, path: Path, name: str | None = None, declared: Declared | None = None) -> None:
        self._path = path
        self._name = name or str(path)
        self._declared = declared
        stream = open_evidence(path, self._name)
        try:
            file = _open(stream)
        except InputError:
            stream.close()
            raise
        # a pipe can be read once only, so it stays open until then
        self._opened = (stream, file) if path.is_fifo() else None
        if self._opened is None:
            stream.close()
        self._observation = Observation("packets", self._name, file.format, proof="declared" if declared else "absent")
        if declared is not None:
            self._observation.watches = dict.fromkeys(ALL_KINDS, "declared")
        self._describe(file)

    @property
    def observation(self) -> Observation:
        """What the file can show; complete after ``events`` was read to its end."""
        return self._observation

    def events(self, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Yield the events of the wanted kinds (None: all); every packet is read and counted either way."""
        out: list[Event] = []
        ledger = Ledger()
        decoder = Decoder(self._name, out.append, _EVERYTHING if wanted is None else wanted, ledger)
        stream, file = self._opened or self._open()
        self._opened = None
        with stream:
            reading = Reading(self._name, file, decoder, ledger, out, wanted is None or "unparsed" in wanted)
            for batch in reading.batches():
                yield from batch
                batch.clear()
            self._describe(file)
        self._conclude(reading, ledger)

    def _open(self) -> tuple[Stream, CaptureFile]:
        stream = open_evidence(self._path, self._name)
        return stream, _open(stream)

    def _describe(self, file: CaptureFile) -> None:
        """State what the file's headers say."""
        observation, declared = self._observation, self._declared
        observation.tool = (declared and declared.tool) or file.tool
        observation.options = list(declared.options) if declared and declared.options else list(file.options)
        observation.scope = (declared and declared.scope) or (", ".join(file.interfaces) or None)

    def _conclude(self, reading: Reading, ledger: Ledger) -> None:
        """Set everything that is known only at the end."""
        observation, declared = self._observation, self._declared
        for option in reading.file.options:
            if option.startswith("filter "):
                ledger.add("filter", "the recorder kept only packets that passed a capture filter")
        observation.proof = "declared" if declared else "inferred" if reading.number else "absent"
        observation.watches = dict.fromkeys(ALL_KINDS, observation.proof) if observation.proof != "absent" else {}
        observation.clock = "epoch" if reading.first_ns != NO_TIME or not reading.number else "none"
        first_ns = reading.first_ns if reading.first_ns != NO_TIME else None
        last_ns = reading.last_ns if reading.last_ns != NO_TIME else None
        observation.begin_ns = declared.begin_ns if declared and declared.begin_ns is not None else first_ns
        observation.end_ns = declared.end_ns if declared and declared.end_ns is not None else last_ns
        observation.complete = declared.complete if declared else reading.file.closed
        observation.counts = {"packets": reading.number, "unparsed": reading.decoder.account.unparsed}
        observation.losses = [*(declared.losses if declared else []), *ledger.losses()]


def _open(stream: Stream) -> CaptureFile:
    head = stream.read_exactly(4)
    return PcapngFile(stream, head) if head == MAGIC else PcapFile(stream, head)
