"""Building controls: the compiler by suffix, and C and Go programs that are what they claim to be."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from controls.catalog import controls
from controls.recorder.building import build, compilers, packaged
from controls.recorder.errors import RecorderError
from controls.recorder.tools import missing

PROBLEM = missing(["gcc", "go", "javac"])
needs_tools = pytest.mark.skipif(PROBLEM is not None, reason=str(PROBLEM))

RESOLVER = {
    "getaddrinfo",
    "getnameinfo",
    "gethostbyname",
    "gethostbyname_r",
    "gethostbyaddr",
    "res_query",
    "res_search",
}
"""Functions of the C library that ask for names."""
ASKS = {"egress/direct-ip/named.c", "egress/unexplained-host/fetch.c", "network/blocked/every.c"}
"""C programs that look names up with the C library; no other control may be able to."""

SOURCES = sorted(
    {
        (f"{control.id}/{name}", control.folder / name, variant.link)
        for control in controls()
        for variant in control.variants.values()
        for name in variant.build
    }
)


@dataclass(frozen=True)
class Program:
    """What pyelftools reads from a program."""

    interpreter: bool
    needed: tuple[str, ...]
    imports: frozenset[str]
    functions: frozenset[str]


def read(path: Path) -> Program:
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        needed: list[str] = []
        imports: set[str] = set()
        functions: set[str] = set()
        for section in elf.iter_sections():
            if isinstance(section, DynamicSection):
                needed += [str(vars(tag)["needed"]) for tag in section.iter_tags("DT_NEEDED")]
            if isinstance(section, SymbolTableSection):
                for symbol in section.iter_symbols():
                    (imports if symbol["st_shndx"] == "SHN_UNDEF" else functions).add(symbol.name.partition("@")[0])
        loader = any(segment["p_type"] == "PT_INTERP" for segment in elf.iter_segments())
    return Program(loader, tuple(needed), frozenset(imports - {""}), frozenset(functions))


def test_a_compiler_is_chosen_by_the_suffix() -> None:
    assert compilers(["a.c", "b.go", "c.c", "D.java"]) == ["gcc", "go", "javac"]
    assert compilers([]) == []
    with pytest.raises(RecorderError) as caught:
        compilers(["a.c", "a.rs"])
    assert str(caught.value) == "a.rs: nothing compiles it; there are compilers for .c, .go, .java"


def test_programs_of_a_command_are_named_by_their_paths() -> None:
    argv = ["/usr/bin/env", "http_proxy=/usr/bin/x", "/usr/bin/curl", "/usr/bin/unknown", "wget", "{control}/nc"]
    assert packaged(argv) == ["curl"]
    assert packaged(["/usr/bin/node", "/usr/sbin/ip"]) == ["ip", "node"]


@needs_tools
def test_a_source_that_does_not_compile_is_an_error_with_the_compilers_words(tmp_path: Path) -> None:
    source = tmp_path / "broken.c"
    source.write_text("int main(void) { return }\n")
    with pytest.raises(RecorderError, match=r"broken\.c:1:25: error: expected expression"):
        build(source, "static")


@needs_tools
def test_java_is_compiled_beside_its_source(tmp_path: Path) -> None:
    (tmp_path / "Empty.java").write_text("class Empty { public static void main(String[] words) { } }\n")
    build(tmp_path / "Empty.java", "static")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Empty.class", "Empty.java"]


def test_the_catalogue_builds_c_both_ways_and_go() -> None:
    assert len(SOURCES) > 12
    assert {(source.suffix, link) for _, source, link in SOURCES} >= {
        (".c", "static"),
        (".c", "dynamic"),
        (".go", "static"),
        (".java", "static"),
    }


@needs_tools
@pytest.mark.parametrize(("name", "source", "link"), [one for one in SOURCES if one[1].suffix == ".c"])
def test_a_c_program_is_what_it_claims_to_be(name: str, source: Path, link: str, tmp_path: Path) -> None:
    copy = tmp_path / source.name
    shutil.copyfile(source, copy)
    build(copy, link)
    program = read(copy.with_suffix(""))
    known = program.functions | program.imports
    assert "main" in program.functions
    assert bool(known & RESOLVER) == (name in ASKS)
    if link == "static":
        assert (program.interpreter, program.needed, program.imports & {"connect", "sendto", "open"}) == (
            False,
            (),
            frozenset(),
        )
    else:
        assert (program.interpreter, program.needed) == (True, ("libc.so.6",))


@needs_tools
@pytest.mark.parametrize(("name", "source", "link"), [one for one in SOURCES if one[1].suffix == ".go"])
def test_a_go_program_needs_no_library(name: str, source: Path, link: str, tmp_path: Path) -> None:
    copy = tmp_path / source.name
    shutil.copyfile(source, copy)
    build(copy, link)
    program = read(copy.with_suffix(""))
    assert (program.interpreter, program.needed) == (False, ()), name
