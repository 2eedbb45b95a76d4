"""Facts about programs: compiled ones against readelf, crafted ones that lie, and whatever pyelftools raises."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import re
import struct
import subprocess
import tracemalloc
from pathlib import Path

import pytest
from elf_programs import ASSEMBLED, CLIENT, PLAIN, Crafted, built, tool
from elftools import construct
from elftools.common import exceptions
from elftools.construct import adapters, core
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpdetect.errors import InputError, Malformed, UnknownFormat
from mcpdetect.ingest.adapter import Declared
from mcpdetect.ingest.elf import BinaryFiles, Symbols, facts, resolve_frames
from mcpdetect.ingest.elf import image as image_module
from mcpdetect.model.binary import BinaryImage, ElfFacts
from mcpdetect.model.event import Frame, Unparsed
from mcpdetect.model.place import Where

LOADER = "/lib64/ld-linux-x86-64.so.2"
SOUND = Crafted().build()


def readelf(path: Path, *options: str) -> str:
    done = subprocess.run([tool("readelf"), "-W", *options, str(path)], capture_output=True, text=True, timeout=60)
    return done.stdout


def of(data: bytes) -> ElfFacts:
    return facts(io.BytesIO(data), "program")


def test_a_dynamic_program_as_readelf_sees_it(tmp_path: Path) -> None:
    path = built(tmp_path, CLIENT, "-Wl,--build-id=sha1")
    found = facts(path)
    head, dynamic = readelf(path, "-h"), readelf(path, "-d")
    assert found.bits == int(re.search(r"Class: +ELF(\d+)", head)[1])  # type: ignore[index]
    assert found.order == "little"
    assert found.linkage == "dynamic"
    assert found.interpreter == re.search(r"interpreter: (.*?)\]", readelf(path, "-l"))[1]  # type: ignore[index]
    assert found.needed == re.findall(r"Shared library: \[(.*?)\]", dynamic)
    assert found.build_id == re.search(r"Build ID: ([0-9a-f]+)", readelf(path, "-n"))[1]  # type: ignore[index]
    imported = set(re.findall(r" UND (\w+)", readelf(path, "--dyn-syms")))
    assert {"connect", "dlopen", "getaddrinfo", "socket"} <= imported
    assert (found.networking, found.opaque, found.io_uring) == (["connect", "getaddrinfo", "socket"], ["dlopen"], [])
    assert (found.stripped, found.packed, found.language, found.problems) == (False, None, None, [])
    assert [text.startswith("GCC: ") for text in found.toolchains] == [True]


def test_a_stripped_program_keeps_what_the_loader_needs(tmp_path: Path) -> None:
    whole, stripped = facts(built(tmp_path, CLIENT)), facts(built(tmp_path, CLIENT, "-s", name="stripped"))
    assert (whole.stripped, stripped.stripped) == (False, True)
    assert stripped.networking == whole.networking == ["connect", "getaddrinfo", "socket"]
    # What was linked into it is no longer to be seen.
    assert (whole.io_uring, stripped.io_uring) == ([], None)


@pytest.mark.parametrize(("option", "linkage"), [("-static", "static"), ("-static-pie", "static-pie")])
def test_a_static_program_tells_by_its_symbols_or_not_at_all(tmp_path: Path, option: str, linkage: str) -> None:
    whole = facts(built(tmp_path, CLIENT, option))
    assert (whole.linkage, whole.interpreter, whole.needed) == (linkage, None, [])
    assert whole.networking is not None
    assert {"connect", "getaddrinfo", "socket"} <= set(whole.networking)
    stripped = facts(built(tmp_path, CLIENT, option, "-s", name="stripped"))
    assert (stripped.linkage, stripped.networking, stripped.opaque) == (linkage, None, None)


def test_a_shared_library_and_an_object_file_are_no_programs(tmp_path: Path) -> None:
    library = facts(built(tmp_path, "int f(void) { return 1; }", "-shared", "-fPIC", "-nostdlib", name="a.so"))
    assert (library.linkage, library.interpreter) == ("library", None)
    assert facts(built(tmp_path, PLAIN, "-c", name="a.o")).linkage == "other"


def test_thirty_two_bits_and_the_other_byte_order() -> None:
    data = bytearray(52 + 32)
    data[:16] = b"\x7fELF\x01\x02\x01" + bytes(9)
    struct.pack_into(">HHIIIIIHHHHHH", data, 16, 2, 8, 1, 0, 52, 0, 0, 52, 32, 1, 40, 0, 0)
    struct.pack_into(">IIIIIIII", data, 52, 1, 0, 0, 0, len(data), len(data), 5, 4)
    found = of(bytes(data))
    assert (found.machine, found.bits, found.order, found.linkage) == ("MIPS", 32, "big", "static")
    assert (found.stripped, found.networking, found.problems) == (True, None, [])


def test_marks_of_go_and_rust(tmp_path: Path) -> None:
    go = facts(built(tmp_path, CLIENT, assembly=ASSEMBLED))
    assert (go.language, go.module) == ("go", "acme.test/server")
    assert "go1.22.1" in go.toolchains
    assert go.networking is None  # Go calls the kernel without functions of libraries
    rust = facts(built(tmp_path, PLAIN, name="rust", assembly=ASSEMBLED[ASSEMBLED.index("    .section .rodata") :]))
    assert (rust.language, rust.module) == ("rust", None)
    assert {"rustc 82e1608dfa6e0b5569232559e3d385fea5a93112", "rustc version 1.75.0 (82e1608df 2023-12-21)"} < set(
        rust.toolchains
    )


def test_go_build_information_of_old_programs_is_pointed_to() -> None:
    strings = b"go1.15.2"
    data = bytearray(SOUND)
    base = len(data) + -len(data) % 16
    data += bytes(-len(data) % 16) + b"\xff Go buildinf:" + bytes([8, 0]) + struct.pack("<QQ", base + 32, 0)
    data += struct.pack("<QQ", base + 48, len(strings)) + strings
    # the one segment over everything, writable
    struct.pack_into("<I", data, 64 + 4, 7)
    struct.pack_into("<QQ", data, 64 + 32, len(data), len(data))
    found = of(bytes(data))
    assert (found.language, found.toolchains, found.module) == ("go", ["go1.15.2"], None)


def test_the_mark_of_a_rust_source_is_found_across_blocks() -> None:
    mark = b"/rustc/" + b"ab" * 20 + b"/"
    for at in ((1 << 20) - len(mark) - 1, (1 << 20) - 20, 1 << 20):
        data = SOUND + bytes(at - len(SOUND)) + mark
        assert of(data).toolchains == ["rustc " + "ab" * 20]


def test_packed_by_mark_or_by_the_look_of_the_code() -> None:
    assert of(SOUND).packed is None
    marked = SOUND[: 64 + 3 * 56 + 4] + b"UPX!" + SOUND[64 + 3 * 56 + 8 :]
    assert of(marked).packed == "upx"
    assert of(SOUND + b"UPX!" + bytes(32)).packed == "upx"
    assert of(SOUND + b"UPX!" + bytes(100)).packed is None
    noise = random.Random(5).randbytes(100_000)  # noqa: S311
    random_code = Crafted({"load_filesz": len(SOUND) + len(noise)}).build() + noise
    found = of(random_code)
    assert (found.packed, found.entropy) == ("entropy", 7994)


def test_a_large_segment_is_sampled_over_its_whole_length() -> None:
    half = 8 << 20
    noise = random.Random(5).randbytes(half)  # noqa: S311
    data = Crafted({"load_filesz": len(SOUND) + 2 * half}).build() + bytes(half) + noise
    entropy = of(data).entropy
    assert entropy is not None
    assert 4500 < entropy < 5500  # half zeros, half noise: one bit to say which, and eight half of the time


LIES = [
    ({"phentsize": 55}, "the program headers have a size or number that no loader takes"),
    ({"phnum": 65535}, "the program headers have a size or number that no loader takes"),
    ({"phoff": 1 << 62}, "program headers are missing from the file"),
    ({"shnum": 65000}, "there are too many section headers"),
    ({"shoff": 1 << 62}, "section headers are missing from the file"),
    ({"shentsize": 0}, "the section headers have a size that is not theirs"),
    ({"last_tag": 15}, "the dynamic section has no end"),
    ({"needed": 99}, "a needed library has a name that cannot be read"),
    ({"strtab": 1 << 40}, "the names of the dynamic section cannot be found"),
    ({"symtab": 1 << 40}, "the dynamic symbols cannot be found"),
    ({"dt_hash": 1 << 40}, "the number of dynamic symbols cannot be known"),
    ({"chains": 0xFFFFFFFF}, "dynamic symbols are missing from the file"),
    ({"symtab_link": 9}, "a symbol table names no string table"),
    ({"symtab_size": 1 << 62}, "a section is longer than the file holds"),
    ({"interp_offset": 1 << 63}, "the interpreter's name is missing from the file"),
    ({"load_filesz": 1 << 50}, "a segment is longer than the file holds"),
]


@pytest.mark.parametrize(("patches", "problem"), LIES, ids=[next(iter(patches)) for patches, _ in LIES])
def test_a_header_that_lies_is_told(patches: dict[str, int], problem: str) -> None:
    found = of(Crafted(patches).build())
    assert problem in found.problems
    assert found.machine == "X86_64"


def test_the_crafted_program_tells_the_truth_when_it_does_not_lie(tmp_path: Path) -> None:
    assert of(SOUND) == ElfFacts(
        "X86_64", 64, "little", "dynamic", LOADER, ["libc.so.6"], ["connect"], [], [], stripped=False
    )
    path = tmp_path / "crafted"
    path.write_bytes(SOUND)
    assert re.findall(r"Shared library: \[(.*?)\]", readelf(path, "-d")) == ["libc.so.6"]


def test_what_cannot_be_read_is_never_taken_for_nothing() -> None:
    unreadable = of(Crafted({"phnum": 65535}).build())
    assert (unreadable.linkage, unreadable.needed, unreadable.networking) == ("unknown", None, None)
    for patches in ({"strtab": 1 << 40}, {"strsz": 0}, {"symtab": 1 << 40}, {"dt_hash": 1 << 40}, {"chains": 1 << 31}):
        assert of(Crafted(patches).build()).networking is None
    assert of(Crafted({"symtab_link": 9}).build()).stripped is False
    # Section headers that lie hide nothing from a reader of what the loader reads.
    for patches in ({"shoff": 1 << 62}, {"shentsize": 0}, {"shnum": 0}, {"shstrndx": 7}):
        assert of(Crafted(patches).build()).networking == ["connect"]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"#!/bin/sh\n", UnknownFormat),
        (b"\x7fEL", UnknownFormat),
        (b"\x7fELF", Malformed),
        (SOUND[:63], Malformed),
        (Crafted({"class": 7}).build(), Malformed),
        (Crafted({"data": 0}).build(), Malformed),
    ],
)
def test_what_is_no_elf_file_at_all(data: bytes, error: type[InputError]) -> None:
    with pytest.raises(error) as caught:
        of(data)
    assert (caught.value.file, caught.value.place) == ("program", "offset 0")


def test_cut_at_every_byte_it_gives_facts_or_says_why_not() -> None:
    outcomes = {"facts": 0, "error": 0}
    for end in range(len(SOUND)):
        try:
            found = of(SOUND[:end])
        except InputError:
            outcomes["error"] += 1
        else:
            outcomes["facts"] += 1
            assert found.problems
            assert found.networking in (None, ["connect"])
    assert outcomes == {"facts": len(SOUND) - 64, "error": 64}


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(4, len(SOUND) - 1), st.integers(0, 255)), max_size=12), st.binary(max_size=40))
def test_changed_bytes_give_facts_or_an_input_error(changes: list[tuple[int, int]], tail: bytes) -> None:
    data = bytearray(SOUND)
    for at, value in changes:
        data[at] = value
    try:
        found = of(bytes(data) + tail)
        Symbols(io.BytesIO(bytes(data) + tail), "program").at(0x100)
    except InputError:
        return
    assert isinstance(found, ElfFacts)


@given(st.binary(max_size=400))
def test_any_bytes_behind_the_magic(data: bytes) -> None:
    try:
        found = of(b"\x7fELF" + data)
    except Malformed:
        return
    assert found.bits in (32, 64)


def _classes(root: type[Exception]) -> set[type[Exception]]:
    return {root}.union(*(_classes(one) for one in root.__subclasses__()))


FOREIGN = sorted(
    {
        *_classes(exceptions.ELFError),
        *_classes(exceptions.DWARFError),
        *_classes(core.ConstructError),
        *(AssertionError, AttributeError, EOFError, IndexError, KeyError, NotImplementedError, OSError, OverflowError),
        *(RecursionError, TypeError, UnicodeDecodeError, ValueError, struct.error, ZeroDivisionError),
    },
    key=lambda one: one.__name__,
)


def _made(error: type[Exception]) -> Exception:
    return error("utf-8", b"\xff", 0, 1, "invalid") if error is UnicodeDecodeError else error("made up")


def test_every_error_class_of_pyelftools_is_known_here() -> None:
    declared = {
        value
        for module in (exceptions, core, adapters, construct)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert declared <= set(FOREIGN)
    assert len(declared) == 19


@pytest.mark.parametrize("error", FOREIGN)
def test_no_foreign_error_gets_out(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise _made(error)

    with monkeypatch.context() as patch:
        patch.setattr(image_module, "struct_parse", fail)
        found = of(SOUND)
        assert (found.linkage, found.needed, found.networking) == ("unknown", None, None)
        assert found.problems == [
            "program headers are missing from the file",
            "section headers are missing from the file",
        ]
    with monkeypatch.context() as patch:
        patch.setattr(image_module, "ELFFile", fail)
        with pytest.raises(Malformed, match="header that cannot be read"):
            of(SOUND)


def test_programs_as_evidence(tmp_path: Path) -> None:
    first, second, third = tmp_path / "a", tmp_path / "b.gz", tmp_path / "c"
    first.write_bytes(SOUND)
    second.write_bytes(gzip.compress(SOUND))
    third.write_bytes(Crafted({"class": 9}).build())
    files = BinaryFiles([first, second, third], ["a", "b", "c"])
    events = list(files.events())
    digest = hashlib.sha256(SOUND).hexdigest()
    elf = of(SOUND)
    assert events == [
        BinaryImage(Where("a", 0, unit="offset"), None, size=len(SOUND), sha256=digest, elf=elf),
        BinaryImage(Where("b", 0, unit="offset"), None, size=len(SOUND), sha256=digest, elf=elf),
        Unparsed(
            Where("c", 0, unit="offset"),
            None,
            seen_in="binaries",
            reason="has an ELF header that cannot be read",
            touches=["binary.image"],
        ),
    ]
    observation = files.observation
    assert (observation.channel, observation.format, observation.source) == ("binaries", "elf", "a and 2 more")
    assert observation.counts == {"files": 3, "events": 2, "unparsed": 1}
    assert [(loss.what, loss.where, loss.touches) for loss in observation.losses] == [
        ("unparsed", Where("c", 0, unit="offset"), ["binary.image"])
    ]


def test_a_declared_program_has_its_path_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "node"
    path.write_bytes(Crafted({"needed": 99}).build())
    files = BinaryFiles(path, "bin/node", Declared(tool="recorder 1", scope="/usr/bin/node", complete=True))
    (event,) = files.events(frozenset({"binary.image"}))
    assert isinstance(event, BinaryImage)
    assert (event.path, event.where.file) == ("/usr/bin/node", "bin/node")
    assert (files.observation.proof, files.observation.watches) == ("declared", {"binary.image": "declared"})
    assert [(loss.what, loss.detail, loss.count) for loss in files.observation.losses] == [
        ("elf-damaged", "a needed library has a name that cannot be read", 1)
    ]


def test_a_script_is_no_program_in_machine_code(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("#!/bin/sh\n")
    with pytest.raises(UnknownFormat, match="is no ELF file"):
        BinaryFiles(path)


def test_a_damaged_compressed_program_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(SOUND)[:-12])
    with pytest.raises(InputError, match="is damaged"):
        facts(path)
    assert [event.kind for event in BinaryFiles(path, "a").events()] == ["unparsed"]


@pytest.mark.parametrize("option", ["-no-pie", "-pie"])
def test_raw_frames_get_the_names_that_readelf_shows(tmp_path: Path, option: str) -> None:
    path = built(tmp_path, CLIENT, option)
    shown = re.search(r"([0-9a-f]+) +(\d+) FUNC .* reach_out$", readelf(path, "--syms"), re.MULTILINE)
    load = re.search(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x\w+ 0x\w+ R E", readelf(path, "-l"))
    assert shown is not None
    assert load is not None
    address, size = int(shown[1], 16), int(shown[2])
    in_file = address - int(load[2], 16) + int(load[1], 16)
    symbols = Symbols(path)
    assert symbols.at(in_file + 3) == symbols.at(address + 3) == ("reach_out", 3)
    assert symbols.at(in_file + size) != ("reach_out", size)
    assert symbols.at(1 << 40) is None
    frames = [
        Frame("/opt/program", None, in_file + 3),
        Frame("/opt/program", "main", 9),
        Frame("/opt/other", None, in_file),
        Frame("unreadable"),
    ]
    assert resolve_frames(frames, {"/opt/program": symbols}) == [Frame("/opt/program", "reach_out", 3), *frames[1:]]


def test_names_that_overlap_add_up_to_nothing() -> None:
    # A million names within four kilobytes: kept whole, they would take two gigabytes.
    names = b"\0" + b"a" * 4000 + b"\0"
    count = 200_000
    entries = b"".join(struct.pack("<IBBHQQ", 1 + at % 4000, 2, 0, 1, at, 1) for at in range(count))
    start = len(SOUND)
    table = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, start, len(entries), 1, 0, 8, 24)
    table += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, start + len(entries), len(names), 0, 0, 1, 0)
    data = Crafted({"shoff": start + len(entries) + len(names), "shnum": 2, "shstrndx": 0}).build()
    data += entries + names + table
    tracemalloc.start()
    try:
        found = of(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.stripped, found.networking, found.problems) == (False, ["connect"], [])
    assert peak < 5 * len(data)
