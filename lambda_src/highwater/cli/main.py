"""The command `highwater`, with the subcommands of all installed distributions."""

from __future__ import annotations

import io
import os
import sys
from importlib.metadata import entry_points

COMMANDS_GROUP = "highwater.commands"
_MISUSE = 2
_INTERRUPTED = 130
# the exit status that a shell reports for a process ended by SIGPIPE
_BROKEN_PIPE = 141


def main() -> None:
    """Run the command line. Exit status: 0 for success, 1 for a finding, 2 for misuse."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # names may contain characters that the terminal's encoding lacks
            stream.reconfigure(errors="replace")
    try:
        status = _run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except BrokenPipeError:
        # the reader closed the pipe: discard the rest, including what the interpreter flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = _BROKEN_PIPE
    except OSError as unwritable:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write(f"highwater: the output cannot be written: {unwritable.strerror}\n")
        status = _MISUSE
    sys.exit(status)


def _run() -> int | str:
    try:
        import click
    except ModuleNotFoundError:
        return "the highwater command needs more libraries; install them with: pip install 'highwater-runtime[cli]'"

    @click.group(context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(package_name="highwater-runtime", prog_name="highwater")
    def highwater() -> None:
        """Manage provisioned capacity of DynamoDB tables.

        `explain`, `status`, `pause` and `resume` work on live tables. The package highwater-lab adds `rehearse`,
        `recommend` and `local`.
        """

    for entry_point in sorted(entry_points(group=COMMANDS_GROUP), key=lambda entry: entry.name):
        highwater.add_command(entry_point.load(), entry_point.name)
    try:
        # without standalone mode, click returns the exit status of the command
        return int(highwater(standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as no_arguments:
        click.echo(no_arguments.format_message(), err=True)
    except click.ClickException as misuse:
        where = misuse.ctx.command_path if isinstance(misuse, click.UsageError) and misuse.ctx else "highwater"
        click.echo(f"{where}: {' '.join(misuse.format_message().split())}", err=True)
    except click.Abort:
        return _INTERRUPTED
    except SystemExit:
        # click exits so when the reader has closed the pipe
        return _BROKEN_PIPE
    return _MISUSE
