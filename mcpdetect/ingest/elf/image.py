"""The parts of an ELF file, read within bounds: pyelftools knows the structures, nothing it raises gets past here.

What a program loader reads (program headers, the dynamic section) is trusted before what only tools read (section
headers): a program runs as well with section headers that lie.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from elftools.common.exceptions import DWARFError, ELFError
from elftools.common.utils import struct_parse
from elftools.construct import Construct, ConstructError
from elftools.elf.elffile import ELFFile

from mcpdetect.errors import Malformed, UnknownFormat

__all__ = ["FOREIGN", "Image", "Names", "Section", "Segment", "Symbol"]

FOREIGN: tuple[type[Exception], ...] = (
    ELFError,
    DWARFError,
    ConstructError,
    struct.error,
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What pyelftools may raise on a file that is not as it should be (its own classes, and slips of its code)."""

# Linux refuses more program headers than fit 64 KiB (fs/binfmt_elf.c, load_elf_phdrs): 1,170 of 56 bytes.
_MOST_SEGMENTS = 2048
_MOST_SECTIONS = 4096
_MOST_DYNAMIC = 4096
_MOST_SYMBOLS = 2_000_000
_MOST_TABLE = 128 * 1024 * 1024
_MOST_NAME = 4096
_MOST_NOTES = 256

_MAGIC = b"\x7fELF"
_PT_LOAD_KINDS = ("PT_LOAD", 1)
# gABI, symbol table: Elf64_Sym is name, info, other, shndx, value, size; Elf32_Sym has value and size before info.
_SYMBOL = {64: "IBBHQQ", 32: "IIIBBH"}


@dataclass(slots=True, frozen=True)
class Segment:
    """One program header; ``kind`` as pyelftools names it (``PT_LOAD``), a number where it has no name."""

    kind: str | int
    flags: int
    offset: int
    address: int
    size: int
    memory: int
    align: int

    @property
    def executable(self) -> bool:
        """Whether it is loaded as code (PF_X)."""
        return bool(self.flags & 1)

    @property
    def writable(self) -> bool:
        """Whether it is loaded writable (PF_W)."""
        return bool(self.flags & 2)


@dataclass(slots=True, frozen=True)
class Section:
    """One section header; ``size`` is what its header says, whatever the file holds."""

    name: bytes
    kind: str | int
    address: int
    offset: int
    size: int
    link: int


@dataclass(slots=True, frozen=True)
class Symbol:
    """One entry of a symbol table.

    ``name_at`` is where its table of names has its name (0: it has none), ``defined`` says that it lies in this file,
    ``function`` that it is code.
    """

    name_at: int
    address: int
    size: int
    defined: bool
    function: bool


class Names:
    """A string table; strings are cut out one at a time, since overlapping ones add up to any size."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._last = data.rfind(b"\0")

    def get(self, at: int) -> bytes | None:
        """Return the string at ``at``, of one longer than any real name the beginning; None where it has no end."""
        if not 0 <= at <= self._last:
            return None
        end = self._data.find(b"\0", at, at + _MOST_NAME)
        return self._data[at : at + _MOST_NAME if end < 0 else end]


class Image:
    """One ELF file.

    Args:
        stream: the file; it must be able to seek.
        name: its name in errors.

    Attributes:
        size: bytes it has.
        bits, order, machine, type: from its header; the last two as pyelftools names them.
        problems: fixed sentences about parts that could not be read.
        segments: its program headers; ``segments_read`` says whether they are whole.

    Raises:
        UnknownFormat: it is no ELF file.
        Malformed: its ELF header cannot be read.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self.problems: list[str] = []
        try:
            stream.seek(0)
            magic = stream.read(4)
            self.size = stream.seek(0, io.SEEK_END)
        except (OSError, ValueError) as error:
            raise Malformed(f"cannot be read: {error}", file=name) from error
        if magic != _MAGIC:
            raise UnknownFormat(
                "is no ELF file", file=name, place="offset 0", value=magic.hex(" "), hint="give the program itself"
            )
        try:
            self._elf = ELFFile(stream)
            header = self._elf.header
            self.bits: int = self._elf.elfclass
            self.order = "little" if self._elf.little_endian else "big"
            self.machine, self.type = header["e_machine"], header["e_type"]
            self._mark = "<" if self.order == "little" else ">"
            self._programs = (header["e_phoff"], header["e_phentsize"], header["e_phnum"])
            self._sections_at = (header["e_shoff"], header["e_shentsize"], header["e_shnum"], header["e_shstrndx"])
        except FOREIGN as error:
            raise Malformed(
                "has an ELF header that cannot be read",
                file=name,
                place="offset 0",
                value=str(error)[:100],
                cause="the file is cut, or was made to defeat readers",
            ) from error
        self.segments_read = True
        self.segments = self._read_segments()
        self._sections: list[Section] | None = None
        self.sections_read = False

    def problem(self, sentence: str) -> None:
        """Note that a part could not be read."""
        if sentence not in self.problems:
            self.problems.append(sentence)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at ``offset``: fewer where the file ends, none outside of it."""
        if offset < 0 or offset >= self.size or size <= 0:
            return b""
        try:
            self._stream.seek(offset)
            return self._stream.read(min(size, self.size - offset))
        except (OSError, ValueError) as error:
            raise Malformed(f"cannot be read: {error}", file=self._name, place=f"offset {offset}") from error

    @property
    def after_programs(self) -> int:
        """Offset of the first byte behind the program headers."""
        offset, each, count = self._programs
        return int(offset) + int(each) * int(count)

    @property
    def sections(self) -> list[Section]:
        """Its section headers; ``sections_read`` says afterwards whether they are whole (a file may have none)."""
        if self._sections is None:
            self._sections = self._read_sections()
        return self._sections

    def offset_of(self, address: int) -> int | None:
        """Return where in the file the byte loaded at ``address`` lies, None where no segment holds it."""
        for segment in self.loads():
            if segment.address <= address < segment.address + segment.size:
                return address - segment.address + segment.offset
        return None

    def address_of(self, offset: int) -> int | None:
        """Return the address at which code at ``offset`` of the file is loaded, None where it is no code."""
        for segment in self.loads():
            if segment.executable and segment.offset <= offset < segment.offset + segment.size:
                return offset - segment.offset + segment.address
        return None

    def loads(self) -> list[Segment]:
        """Return the segments that are loaded."""
        return [segment for segment in self.segments if segment.kind in _PT_LOAD_KINDS]

    def segment(self, kind: str) -> Segment | None:
        """Return the first segment of a kind; the loader looks no further."""
        return next((segment for segment in self.segments if segment.kind == kind), None)

    def dynamic(self) -> dict[str | int, list[int]] | None:
        """Return the dynamic section, tag to values in order; None where there is none or it cannot be read."""
        segment = self.segment("PT_DYNAMIC")
        if segment is None:
            return None
        found: dict[str | int, list[int]] = {}
        each = self._elf.structs.Elf_Dyn.sizeof()
        raw = io.BytesIO(self.read(segment.offset, min(segment.size, _MOST_DYNAMIC * each)))
        for at in range(_MOST_DYNAMIC):
            entry = self._parse(self._elf.structs.Elf_Dyn, raw, at * each)
            if entry is None:
                self.problem("the dynamic section has no end")
                return found or None
            if entry["d_tag"] == "DT_NULL":
                return found
            found.setdefault(entry["d_tag"], []).append(entry["d_val"])
        self.problem("the dynamic section has too many entries")
        return found

    def symbols(self, table: bytes) -> Iterator[Symbol]:
        """Yield the entries of a symbol table."""
        form = struct.Struct(self._mark + _SYMBOL[self.bits])
        usable = min(len(table) // form.size, _MOST_SYMBOLS) * form.size
        if usable + form.size <= len(table):
            self.problem("a symbol table has too many entries")
        for fields in form.iter_unpack(memoryview(table)[:usable]):
            if self.bits == 64:
                name, info, _, place, address, size = fields
            else:
                name, address, size, info, _, place = fields
            # STT_FUNC 2, STT_GNU_IFUNC 10; SHN_UNDEF 0
            yield Symbol(name, address, size, place != 0, info & 15 in (2, 10))

    def symbol_table(self, kind: str) -> tuple[bytes, Names] | None:
        """Return the entries and names of the first section of a kind (``SHT_SYMTAB``), None where there is none."""
        for section in self.sections:
            if section.kind == kind:
                if section.link >= len(self.sections):
                    self.problem("a symbol table names no string table")
                    return None
                return self.table(section), Names(self.table(self.sections[section.link]))
        return None

    def table(self, section: Section) -> bytes:
        """Return the content of a section, as far as the file and the bounds allow; what is missing is noted."""
        raw = self.read(section.offset, min(section.size, _MOST_TABLE))
        if len(raw) < section.size:
            self.problem("a section is longer than the file holds")
        return raw

    def notes(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield name, type and content of the notes that segments hold (gABI, note section)."""
        seen = 0
        for segment in self.segments:
            if segment.kind != "PT_NOTE" or seen >= _MOST_NOTES:
                continue
            raw = self.read(segment.offset, min(segment.size, 65536))
            step = 8 if segment.align == 8 else 4
            at = 0
            while at + 12 <= len(raw) and seen < _MOST_NOTES:
                seen += 1
                name_size, size, kind = struct.unpack_from(self._mark + "III", raw, at)
                content = at + 12 + -(-name_size // 4) * 4
                content = -(-content // step) * step
                if content + size > len(raw):
                    self.problem("a note is longer than its segment")
                    break
                yield raw[at + 12 : at + 12 + name_size].rstrip(b"\0"), kind, raw[content : content + size]
                at = -(-(content + size) // step) * step

    def _parse(self, structure: Construct, stream: BinaryIO | io.BytesIO, offset: int) -> Any:  # noqa: ANN401  pyelftools gives Any
        """Return one structure, None where it cannot be read: the one place where pyelftools reads tables."""
        try:
            return struct_parse(structure, stream, stream_pos=offset)
        except FOREIGN:
            return None

    def _read_segments(self) -> list[Segment]:
        start, each, count = self._programs
        found: list[Segment] = []
        if not count:
            return found
        if each != self._elf.structs.Elf_Phdr.sizeof() or count > _MOST_SEGMENTS:
            # What the loader refuses too (fs/binfmt_elf.c: e_phentsize must be the structure's size).
            self.problem("the program headers have a size or number that no loader takes")
            self.segments_read = False
            return found
        raw = io.BytesIO(self.read(start, each * count))
        for number in range(count):
            entry = self._parse(self._elf.structs.Elf_Phdr, raw, number * each)
            if entry is None:
                self.problem("program headers are missing from the file")
                self.segments_read = False
                break
            segment = Segment(
                entry["p_type"],
                entry["p_flags"],
                entry["p_offset"],
                entry["p_vaddr"],
                entry["p_filesz"],
                entry["p_memsz"],
                entry["p_align"],
            )
            if segment.kind in _PT_LOAD_KINDS and segment.offset + segment.size > self.size:
                self.problem("a segment is longer than the file holds")
            found.append(segment)
        return found

    def _read_sections(self) -> list[Section]:
        start, each, count, names_at = self._sections_at
        found: list[Section] = []
        if not start:
            self.sections_read = True
            return found
        if each != self._elf.structs.Elf_Shdr.sizeof():
            self.problem("the section headers have a size that is not theirs")
            return found
        first = self._parse(self._elf.structs.Elf_Shdr, io.BytesIO(self.read(start, each)), 0)
        # gABI, e_shnum: from 0xff00 sections on, e_shnum is 0 and section 0 has the number (and the index of names).
        if first is not None and count == 0:
            count = first["sh_size"]
        if first is not None and names_at == 0xFFFF:
            names_at = first["sh_link"]
        if count > _MOST_SECTIONS:
            self.problem("there are too many section headers")
            count = _MOST_SECTIONS
        raw = io.BytesIO(self.read(start, each * count))
        entries = []
        for number in range(count):
            entry = self._parse(self._elf.structs.Elf_Shdr, raw, number * each)
            if entry is None:
                self.problem("section headers are missing from the file")
                break
            entries.append(entry)
        self.sections_read = len(entries) == count <= _MOST_SECTIONS
        names = Names(b"")
        if 0 < names_at < len(entries):
            names = Names(self.read(entries[names_at]["sh_offset"], min(entries[names_at]["sh_size"], 1 << 20)))
        for entry in entries:
            found.append(
                Section(
                    names.get(entry["sh_name"]) or b"",
                    entry["sh_type"],
                    entry["sh_addr"],
                    entry["sh_offset"],
                    entry["sh_size"] if entry["sh_type"] != "SHT_NOBITS" else 0,
                    entry["sh_link"],
                )
            )
        return found
