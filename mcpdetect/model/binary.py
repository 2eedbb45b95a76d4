"""Executable files: what a program that ran could do by the look of its file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mcpdetect.model.event import Event
from mcpdetect.model.place import STRICT
from mcpdetect.model.vocabulary import Channel

__all__ = ["BinaryImage", "ElfFacts"]


@dataclass(slots=True)
class ElfFacts:
    """What an ELF file says (System V gABI; Linux and GNU additions).

    Attributes:
        machine: the processor as the ELF header names it, without ``EM_`` (``X86_64``, ``AARCH64``), or its number.
        bits: 32 or 64.
        order: byte order.
        linkage: ``dynamic`` asks for an interpreter; ``static`` has neither interpreter nor dynamic section;
            ``static-pie`` has a dynamic section, no interpreter, and needs no library; ``library`` is any other shared
            object; ``other`` is no program (an object or core
            file); ``unknown`` where the program headers could not be read.
        interpreter: the dynamic loader asked for (PT_INTERP).
        needed: the libraries it names (DT_NEEDED), in order; None where they could not be read.
        networking: functions it takes from libraries (of a static program: that its symbol table names) which open
            sockets, move data over them or resolve names, sorted; None where its file does not tell.
        io_uring: functions of io_uring it takes or holds, sorted; None where its file does not tell.
        opaque: functions it takes by which it may call others that its file does not name: ``dlopen``, ``dlsym``,
            ``syscall``, ...; sorted; None where its file does not tell.
        stripped: it has no symbol table of its own; None where the section headers could not be read.
        packed: ``upx`` by that packer's own mark; ``entropy`` where code looks like compressed or encrypted data.
        entropy: of the largest loaded segment, in thousandths of a bit a byte (at most 8000), of an even sample; None
            where there is too little to measure.
        build_id: the GNU build id in hexadecimal.
        language: ``go`` or ``rust`` where a mark of their compilers is in it.
        toolchains: compilers by their own words (``go1.22.1``, ``GCC: (Debian 12.2.0-14) 12.2.0``), sorted.
        module: the Go package path its build information names.
        problems: parts that could not be read, each a fixed sentence; what they would have told is None or missing.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    machine: str
    bits: Literal[32, 64]
    order: Literal["little", "big"]
    linkage: Literal["dynamic", "static", "static-pie", "library", "other", "unknown"]
    interpreter: str | None = None
    needed: list[str] | None = None
    networking: list[str] | None = None
    io_uring: list[str] | None = None
    opaque: list[str] | None = None
    stripped: bool | None = None
    packed: Literal["upx", "entropy"] | None = None
    entropy: int | None = None
    build_id: str | None = None
    language: Literal["go", "rust"] | None = None
    toolchains: list[str] = field(default_factory=list)
    module: str | None = None
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class BinaryImage(Event):
    """An executable file that the run used and the evidence holds. It has no time: it lay there all along.

    Attributes:
        path: its absolute path on the machine of the run, where a manifest says it.
        size: its length in bytes.
        sha256: of its content, in hexadecimal.
        elf: what its content says.
    """

    kind: Literal["binary.image"] = field(default="binary.image", kw_only=True)
    channel: ClassVar[Channel] = "binaries"
    path: str | None = None
    size: int = 0
    sha256: str = ""
    elf: ElfFacts | None = None
