"""``mcpdetect probe``: print the probe program; run it yourself, in your own sandbox."""

from __future__ import annotations

from importlib.resources import files

import click

from mcpdetect.cli.console import write_output
from mcpdetect.report.outcome import EXIT_OK

__all__ = ["command"]


@click.command(
    "probe",
    short_help="Print the probe program for your own sandbox.",
    epilog=(
        "\b\nIn the sandbox, under its tracer, as the user of the program:\n"
        "  strace -f -ttt -yy -o trace.log sh -c '\n"
        "    sh probe.sh before 0123456789abcdef\n"
        "    the-program\n"
        "    sh probe.sh after fedcba9876543210'\n"
        "Then:\n"
        "  mcpdetect calibrate --strace trace.log --pcap capture.pcap --dns dnsmasq.log"
    ),
)
@click.option("--c", "as_c", is_flag=True, help="Print the C program, which does more and needs nothing to run.")
def command(as_c: bool) -> int:
    """Print a program of harmless acts, each with a nonce, by which evidence proves that its channels watched.

    Nothing is run. The shell script needs a POSIX shell, and uses what is there to open connections; the C program,
    linked statically, needs nothing. Choose fresh random nonces, and keep the second from the program under test.
    """
    name = "probe.c" if as_c else "probe.sh"
    write_output((files("mcpdetect.data") / "probe" / name).read_text(encoding="utf-8"), None)
    return EXIT_OK
