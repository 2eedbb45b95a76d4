"""The program: its commands, and how every way to end becomes an exit code and at most one block on stderr."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn

import click

from mcpdetect.cli.console import fail, flush_quietly
from mcpdetect.errors import McpDetectError, SpecError
from mcpdetect.report.outcome import EXIT_CRASH, EXIT_OK, EXIT_UNREADABLE
from mcpdetect.version import VERSION

__all__ = ["main", "mcpdetect", "run"]

EXIT_INTERRUPTED = 130
"""Ended by the user (128 + SIGINT), as shells report it."""

# Command -> the module that holds it. Loaded when asked for: each needs other parts of the package.
_COMMANDS = (
    "check",
    "parse",
    "events",
    "detectors",
    "selftest",
    "coverage",
    "label",
    "recheck",
    "baseline",
    "documented",
    "probe",
    "calibrate",
    "schema",
    "new",
    "completion",
)


class _Commands(click.Group):
    """A group whose commands are imported when they are run or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, None for an unknown name."""
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"mcpdetect.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of ``args``; an unknown one is a usage error that offers the nearest."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], _COMMANDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"commands are {', '.join(_COMMANDS)}"
            ctx.fail(f"there is no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"mcpdetect {VERSION}")
        ctx.exit(EXIT_OK)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
def mcpdetect() -> None:
    """Say what an MCP server really did, from the evidence of its sandbox, and what that evidence cannot show.

    Exit codes of check, the highest-ranking first: 2 wrong usage; 4 an input could not be read; 5 a detector crashed;
    1 a finding at or above --fail-on; 3 a check that had to be observable was not; 0 otherwise.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    Args:
        arguments: the command line without the program's name; None takes the process's own.
    """
    try:
        code = mcpdetect.main(
            args=None if arguments is None else list(arguments), prog_name="mcpdetect", standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except SpecError as error:
        fail(error)
        return EXIT_CRASH
    except McpDetectError as error:
        fail(error)
        return EXIT_UNREADABLE
    return code if isinstance(code, int) else EXIT_OK


def run() -> NoReturn:
    """Run as a process: exit with the code of ``main``, and never with a traceback."""
    sys.excepthook = _unexpected
    # Events hold no cycles: looking for some in every 700 new objects costs a tenth of the time and finds nothing.
    gc.set_threshold(100_000, 20, 20)
    code = main()
    flush_quietly()
    sys.exit(code)


def _unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report a fault of mcpdetect itself; set MCPDETECT_TRACEBACK to see where in the code."""
    if os.environ.get("MCPDETECT_TRACEBACK"):
        sys.__excepthook__(kind, error, trace)
    else:
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = ""
        if trace is not None:
            name = trace.tb_frame.f_code.co_filename.replace(os.sep, "/")
            place = f"{name[name.rfind('mcpdetect/') :]}:{trace.tb_lineno}"
        fail(
            McpDetectError(
                "mcpdetect failed; nothing was decided",
                place=place,
                value=f"{kind.__name__}: {error}"[:400],
                cause="out of memory" if issubclass(kind, MemoryError) else "a fault of mcpdetect, not of the evidence",
                hint="report it with this text; MCPDETECT_TRACEBACK=1 shows where it happened",
            )
        )
    flush_quietly()
    raise SystemExit(EXIT_CRASH)
