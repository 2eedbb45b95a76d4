"""Facts about one ELF file."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, Literal

from mcpdetect.ingest.elf.functions import is_io_uring, is_networking, is_opaque
from mcpdetect.ingest.elf.image import Image, Names, Symbol
from mcpdetect.ingest.elf.marks import MarkSearch, comments, entropy, go_build, packed_by_upx
from mcpdetect.ingest.elf.source import open_seekable
from mcpdetect.model.binary import ElfFacts
from mcpdetect.model.text import text_of

__all__ = ["examine", "facts"]

_BLOCK = 1 << 20
_MOST_NAMES = 1024
_MOST_FUNCTIONS = 1024
_LONGEST = 80
_MOST_CODE = 4
_DF_1_PIE = 0x08000000

PACKED_CODE = 7200
"""Entropy from which code counts as packed, in thousandths of a bit a byte.

Lyda and Hamrock, "Using Entropy Analysis to Find Encrypted and Packed Malware" (2007) give 7.2 as the average highest
block entropy of encrypted programs; native code has 5 to 6.7.
"""


def facts(source: Path | BinaryIO, name: str | None = None) -> ElfFacts:
    """Return what an ELF file says.

    Args:
        source: the file (compressed or not), or a stream of it that can seek.
        name: its name in errors; the path otherwise.

    Raises:
        UnknownFormat: it is no ELF file.
        InputError: it cannot be read, or its ELF header makes no sense.
    """
    with open_seekable(source, name) as (stream, shown):
        return examine(stream, shown)[0]


def examine(stream: BinaryIO, name: str) -> tuple[ElfFacts, int, str]:
    """Return the facts about an ELF file, its length, and its sha256.

    Raises:
        UnknownFormat: it is no ELF file.
        InputError: it cannot be read, or its ELF header makes no sense.
    """
    image = Image(stream, name)
    digest, search = hashlib.sha256(), MarkSearch()
    for at in range(0, image.size, _BLOCK):
        block = image.read(at, _BLOCK)
        digest.update(block)
        search.feed(block)
    return _facts(image, search), image.size, digest.hexdigest()


def _facts(image: Image, search: MarkSearch) -> ElfFacts:
    dynamic = image.dynamic()
    made = ElfFacts(
        machine=str(image.machine).removeprefix("EM_"),
        bits=64 if image.bits == 64 else 32,
        order="little" if image.order == "little" else "big",
        linkage=_linkage(image, dynamic),
    )
    made.interpreter = _interpreter(image)
    made.needed = _needed(image, dynamic)
    own = image.symbol_table("SHT_SYMTAB")
    if image.sections_read or own is not None:
        made.stripped = not any(section.kind == "SHT_SYMTAB" for section in image.sections)
    _functions(image, made, dynamic, own)
    made.build_id = next(
        (content.hex() for owner, kind, content in image.notes() if owner == b"GNU" and kind == 3 and content), None
    )
    _randomness(image, made)
    _language(image, made, search)
    made.problems = sorted(image.problems)
    return made


def _linkage(
    image: Image, dynamic: dict[str | int, list[int]] | None
) -> Literal["dynamic", "static", "static-pie", "library", "other", "unknown"]:
    if not image.segments_read:
        return "unknown"
    if image.type not in ("ET_EXEC", "ET_DYN") or not image.loads():
        return "other"
    if image.segment("PT_INTERP") is not None:
        return "dynamic"
    if image.segment("PT_DYNAMIC") is None:
        return "static"
    if dynamic is not None and "DT_NEEDED" not in dynamic and dynamic.get("DT_FLAGS_1", [0])[0] & _DF_1_PIE:
        return "static-pie"
    return "library"


def _interpreter(image: Image) -> str | None:
    segment = image.segment("PT_INTERP")
    if segment is None:
        return None
    raw = image.read(segment.offset, min(segment.size, 4096)).partition(b"\0")[0]
    if not raw:
        image.problem("the interpreter's name is missing from the file")
        return None
    return text_of(raw)


def _string_table(image: Image, dynamic: dict[str | int, list[int]]) -> Names | None:
    address, size = dynamic.get("DT_STRTAB"), dynamic.get("DT_STRSZ")
    place = image.offset_of(address[0]) if address else None
    if place is None or not size:
        image.problem("the names of the dynamic section cannot be found")
        return None
    return Names(image.read(place, min(size[0], 64 << 20)))


def _needed(image: Image, dynamic: dict[str | int, list[int]] | None) -> list[str] | None:
    if dynamic is None:
        return [] if image.segments_read and image.segment("PT_DYNAMIC") is None else None
    if "DT_NEEDED" not in dynamic:
        return []
    names = _string_table(image, dynamic)
    if names is None:
        return None
    if len(dynamic["DT_NEEDED"]) > _MOST_NAMES:
        image.problem("it needs more libraries than any program does")
        return None
    found = []
    for at in dynamic["DT_NEEDED"]:
        text = names.get(at)
        if text is None:
            image.problem("a needed library has a name that cannot be read")
            return None
        found.append(text_of(text))
    return found


def _functions(
    image: Image, made: ElfFacts, dynamic: dict[str | int, list[int]] | None, own: tuple[bytes, Names] | None
) -> None:
    """Fill in which functions it takes (dynamic) or holds (static). No list is better than one that may lack names."""
    before = len(image.problems)
    taken = _imports(image, dynamic) if dynamic is not None and made.linkage in ("dynamic", "library") else None
    held = None
    if own is not None:
        held = _known(image, (one for one in image.symbols(own[0]) if one.function and one.defined), own[1])
    whole = len(image.problems) == before
    go = any(section.name == b".go.buildinfo" for section in image.sections)
    if taken is not None:
        made.networking = None if go or not whole else _chosen(taken, is_networking)
        made.opaque = _chosen(taken, is_opaque) if whole else None
        uring = _chosen(taken | (held or set()), is_io_uring)
        # Only its own symbols show a library that was linked in; without them, no name proves nothing.
        made.io_uring = uring if uring or (held is not None and whole) else None
    elif held is not None and made.linkage in ("static", "static-pie") and whole and not go:
        made.networking = _chosen(held, is_networking)
        made.io_uring = _chosen(held, is_io_uring)
        made.opaque = _chosen(held, is_opaque)


def _imports(image: Image, dynamic: dict[str | int, list[int]]) -> set[str] | None:
    """Return which known functions it takes: undefined entries of its dynamic symbols; None where not readable."""
    address = dynamic.get("DT_SYMTAB")
    place = image.offset_of(address[0]) if address else None
    names = _string_table(image, dynamic) if address else None
    if place is None or names is None:
        image.problem("the dynamic symbols cannot be found")
        return None
    count = _symbol_count(image, dynamic)
    if count is None:
        image.problem("the number of dynamic symbols cannot be known")
        return None
    each = 24 if image.bits == 64 else 16
    raw = image.read(place, min(count * each, 64 << 20))
    if len(raw) < count * each:
        image.problem("dynamic symbols are missing from the file")
    return _known(image, (one for one in image.symbols(raw) if not one.defined and one.name_at), names)


def _symbol_count(image: Image, dynamic: dict[str | int, list[int]]) -> int | None:
    """Return how many dynamic symbols there are, which only the hash tables tell.

    DT_HASH (gABI, hash table): the second word is the number of chains, one a symbol. DT_GNU_HASH: symbols from
    ``symoffset`` on are hashed; the chain of the highest bucket ends, by its lowest bit, at the last symbol.
    """
    mark = "<" if image.order == "little" else ">"
    counts = []
    place = image.offset_of(dynamic["DT_HASH"][0]) if "DT_HASH" in dynamic else None
    if place is not None and len(raw := image.read(place, 8)) == 8:
        counts.append(struct.unpack(mark + "II", raw)[1])
    place = image.offset_of(dynamic["DT_GNU_HASH"][0]) if "DT_GNU_HASH" in dynamic else None
    if place is not None and len(raw := image.read(place, 16)) == 16:
        buckets, first, words, _ = struct.unpack(mark + "IIII", raw)
        start = place + 16 + words * (image.bits // 8)
        table = image.read(start, min(buckets, 1 << 22) * 4)
        table = table[: len(table) // 4 * 4]
        last = max((value for (value,) in struct.iter_unpack(mark + "I", table)), default=0)
        if last < first:
            counts.append(first)
        elif (end := _chain_end(image, mark, start + buckets * 4, last, first)) is not None:
            counts.append(end)
    return max(counts, default=None)


def _chain_end(image: Image, mark: str, chains: int, last: int, first: int) -> int | None:
    """Return one more than the index of the last symbol of the chain that ``last`` begins."""
    raw = image.read(chains + (last - first) * 4, 1 << 16)
    for step, (value,) in enumerate(struct.iter_unpack(mark + "I", raw[: len(raw) // 4 * 4])):
        if value & 1:
            return last + step + 1
    return None


def _known(image: Image, symbols: Iterable[Symbol], names: Names) -> set[str]:
    """Return the names of symbols that say what a program can do; no others are kept."""
    found: set[str] = set()
    for symbol in symbols:
        name = names.get(symbol.name_at)
        if name is None:
            image.problem("a symbol has a name that cannot be read")
        elif len(name) <= _LONGEST:
            text = name.decode("ascii", "replace")
            if is_networking(text) or is_io_uring(text) or is_opaque(text):
                found.add(text)
        if len(found) > _MOST_FUNCTIONS:
            image.problem("there are more functions of one kind than any library has")
            break
    return found


def _chosen(names: Iterable[str], wanted: Callable[[str], bool]) -> list[str]:
    return sorted(name for name in names if wanted(name))


def _randomness(image: Image, made: ElfFacts) -> None:
    loads = image.loads()
    if loads:
        made.entropy = entropy(image, max(loads, key=lambda segment: segment.size))
    if packed_by_upx(image):
        made.packed = "upx"
        return
    # Linkers make one segment of code, packers two; of a thousand made to keep us busy the largest will do.
    code = sorted((one for one in loads if one.executable), key=lambda segment: segment.size)[-_MOST_CODE:]
    if any((entropy(image, segment) or 0) >= PACKED_CODE for segment in code):
        made.packed = "entropy"


def _language(image: Image, made: ElfFacts, search: MarkSearch) -> None:
    toolchains = set(comments(image))
    go = go_build(image)
    if go is not None:
        made.language, made.module = "go", go.module
        toolchains.add(go.version)
    elif search.rustc or any(text.startswith("rustc version ") for text in toolchains):
        made.language = "rust"
    toolchains.update(f"rustc {commit}" for commit in search.rustc)
    made.toolchains = sorted(toolchains)[:16]
