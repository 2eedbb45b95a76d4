"""``mcpdetect completion``: what a shell must read to complete commands, options and check ids."""

from __future__ import annotations

import click

from mcpdetect.cli.console import write_output
from mcpdetect.report.outcome import EXIT_OK

__all__ = ["command"]


@click.command(
    "completion",
    short_help="Print shell completion for bash, zsh or fish.",
    epilog=(
        "\b\nTo load it:\n"
        '  bash  eval "$(mcpdetect completion bash)"   in ~/.bashrc\n'
        '  zsh   eval "$(mcpdetect completion zsh)"    in ~/.zshrc\n'
        "  fish  mcpdetect completion fish > ~/.config/fish/completions/mcpdetect.fish"
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the completion code for a shell."""
    from click.shell_completion import ShellComplete, get_completion_class

    from mcpdetect.cli.main import mcpdetect

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this version of click completes nothing for {shell}")
    completer = kind(mcpdetect, {}, "mcpdetect", "_MCPDETECT_COMPLETE")
    # Not completer.source(): for bash that starts a shell to ask its version, and this program starts nothing.
    write_output(ShellComplete.source(completer) + "\n", None)
    return EXIT_OK
