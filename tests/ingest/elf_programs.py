"""ELF files for tests: compiled here where a compiler is at hand, and one laid out byte by byte."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

__all__ = ["ASSEMBLED", "CLIENT", "PLAIN", "Crafted", "built", "tool"]

PLAIN = "int main(void) { return 0; }\n"
CLIENT = """\
#include <dlfcn.h>
#include <netdb.h>
#include <stddef.h>
#include <sys/socket.h>
__attribute__((noinline)) int reach_out(int fd) { return connect(fd, NULL, 0); }
int main(int argc, char **argv) {
    struct addrinfo *found = NULL;
    if (argc > 9) { dlopen(argv[1], RTLD_NOW); }
    return getaddrinfo(argv[0], NULL, NULL, &found) + reach_out(socket(AF_INET, SOCK_STREAM, 0));
}
"""
# What the Go linker lays out (debug/buildinfo: magic, pointer size, flags, then strings with their lengths before
# them), and what rustc leaves in .rodata and .comment.
ASSEMBLED = r"""
    .section .go.buildinfo,"aw"
    .balign 16
    .ascii "\xff Go buildinf:"
    .byte 8, 2
    .zero 16
    .byte 8
    .ascii "go1.22.1"
    .byte 73
    .ascii "0123456789abcdefpath\tacme.test/server\nmod\tacme.test/server\tv1\n0123456789abc"
    .section .rodata
    .asciz "/rustc/82e1608dfa6e0b5569232559e3d385fea5a93112/library/core/src/fmt/mod.rs"
    .section .comment,"MS",@progbits,1
    .asciz "rustc version 1.75.0 (82e1608df 2023-12-21)"
"""


def tool(name: str) -> str:
    """Return the path of a program of the tool chain; without it the test is skipped, loudly."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: ELF files are not compared with it; install the package that has it")
    return found


def built(folder: Path, source: str, *options: str, name: str = "program", assembly: str = "") -> Path:
    """Return a program compiled from C (and assembly linked to it)."""
    compiler = tool("gcc")
    inputs = [folder / f"{name}.c"]
    inputs[0].write_text(source)
    if assembly:
        inputs.append(folder / f"{name}_asm.s")
        inputs[1].write_text(assembly)
    target = folder / name
    done = subprocess.run(
        [compiler, "-w", "-O1", *options, "-o", str(target), *map(str, inputs)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


@dataclass
class Crafted:
    """A 64-bit little-endian program header by header, each field free to lie.

    It holds one code segment over everything, an interpreter, a dynamic section with one library and two undefined
    functions, and three section headers.
    """

    patches: dict[str, int] = field(default_factory=dict)

    def _value(self, name: str, default: int) -> int:
        return self.patches.get(name, default)

    def build(self) -> bytes:
        """Return its bytes."""
        names = b"\0libc.so.6\0connect\0strlen\0"
        symbols = bytes(24) + struct.pack("<IBBHQQ", 11, 0x12, 0, 0, 0, 0) + struct.pack("<IBBHQQ", 19, 18, 0, 0, 0, 0)
        interpreter = b"/lib64/ld-linux-x86-64.so.2\0"
        programs = 3
        at = 64 + 56 * programs
        place: dict[str, int] = {}
        body = b""
        for part, content in (
            ("interpreter", interpreter),
            ("names", names),
            ("symbols", symbols),
            ("hash", struct.pack("<IIIIII", 1, self._value("chains", 3), 1, 0, 2, 0)),
        ):
            body += bytes(-(at + len(body)) % 8)
            place[part] = at + len(body)
            body += content
        body += bytes(-(at + len(body)) % 8)
        place["dynamic"] = at + len(body)
        entries = [
            (1, self._value("needed", 1)),
            (5, self._value("strtab", place["names"])),
            (10, self._value("strsz", len(names))),
            (6, self._value("symtab", place["symbols"])),
            (4, self._value("dt_hash", place["hash"])),
            (self._value("last_tag", 0), 0),
        ]
        body += b"".join(struct.pack("<QQ", *entry) for entry in entries)
        sections = at + len(body)
        size = sections + 3 * 64
        headers = [
            (1, 5, 0, self._value("load_filesz", size)),
            (3, 4, self._value("interp_offset", place["interpreter"]), self._value("interp_size", len(interpreter))),
            (2, 4, self._value("dynamic_offset", place["dynamic"]), self._value("dynamic_size", 16 * len(entries))),
        ]
        table = b"".join(struct.pack("<IIQQQQQQ", k, f, o, o, o, s, s, 8) for k, f, o, s in headers)
        sectioned = bytes(64)
        sectioned += struct.pack(
            "<IIQQQQIIQQ",
            0,
            2,
            0,
            0,
            place["symbols"],
            self._value("symtab_size", 72),
            self._value("symtab_link", 2),
            0,
            8,
            24,
        )
        sectioned += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, place["names"], len(names), 0, 0, 1, 0)
        ident = b"\x7fELF" + bytes([self._value("class", 2), self._value("data", 1), 1, 0]) + bytes(8)
        header = ident + struct.pack(
            "<HHIQQQIHHHHHH",
            self._value("type", 3),
            self._value("machine", 62),
            1,
            0,
            self._value("phoff", 64),
            self._value("shoff", sections),
            0,
            64,
            self._value("phentsize", 56),
            self._value("phnum", programs),
            self._value("shentsize", 64),
            self._value("shnum", 3),
            self._value("shstrndx", 2),
        )
        return header + table + body + sectioned
