"""Executable files (ELF): facts about programs that ran, and names for raw stack frames."""

from mcpdetect.ingest.elf.files import BinaryFiles
from mcpdetect.ingest.elf.reading import facts
from mcpdetect.ingest.elf.symbols import Symbols, resolve_frames

__all__ = ["BinaryFiles", "Symbols", "facts", "resolve_frames"]
