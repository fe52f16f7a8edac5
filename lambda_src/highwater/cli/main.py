"""The command `highwater`: gathers the commands that the installed distributions bring."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

COMMANDS_GROUP = "highwater.commands"
_MISUSE = 2
_INTERRUPTED = 130


def main() -> None:
    """Run the command line; exit status 0 fine, 1 a finding, 2 misuse."""
    try:
        import click
    except ModuleNotFoundError:
        sys.exit("the highwater command needs more libraries; install them with: pip install 'highwater-runtime[cli]'")

    @click.group(context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(package_name="highwater-runtime", prog_name="highwater")
    def highwater() -> None:
        """Provisioned capacity for DynamoDB, declared and kept.

        Commands come with the installed distributions; highwater-lab brings `rehearse`, `recommend` and `local`.
        """

    for entry_point in sorted(entry_points(group=COMMANDS_GROUP), key=lambda entry: entry.name):
        highwater.add_command(entry_point.load(), entry_point.name)
    try:
        # in this mode click returns the status that a command exits with
        sys.exit(highwater(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as asked_for_nothing:
        click.echo(asked_for_nothing.format_message(), err=True)
        sys.exit(_MISUSE)
    except click.ClickException as misuse:
        where = misuse.ctx.command_path if isinstance(misuse, click.UsageError) and misuse.ctx else "highwater"
        click.echo(f"{where}: {misuse.format_message()}", err=True)
        sys.exit(_MISUSE)
    except click.Abort:
        sys.exit(_INTERRUPTED)
