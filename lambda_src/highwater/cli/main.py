"""The command `highwater`: gathers the commands that the installed distributions bring."""

from __future__ import annotations

import io
import os
import sys
from importlib.metadata import entry_points

COMMANDS_GROUP = "highwater.commands"
_MISUSE = 2
_INTERRUPTED = 130
# as a shell tells the signal
_BROKEN_PIPE = 141


def main() -> None:
    """Run the command line; exit status 0 fine, 1 a finding, 2 misuse."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # names may hold what a terminal's encoding lacks
            stream.reconfigure(errors="replace")
    try:
        status = _run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except BrokenPipeError:
        # whoever read the output has enough; nothing more goes there, not at the interpreter's end either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = _BROKEN_PIPE
    except OSError as unwritable:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write(f"highwater: its output cannot be written: {unwritable.strerror}\n")
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
        """Provisioned capacity for DynamoDB, declared and kept.

        `explain`, `status`, `pause` and `resume` are for live tables; highwater-lab brings `rehearse`, `recommend` and
        `local`.
        """

    for entry_point in sorted(entry_points(group=COMMANDS_GROUP), key=lambda entry: entry.name):
        highwater.add_command(entry_point.load(), entry_point.name)
    try:
        # in this mode click returns the status that a command exits with
        return int(highwater(standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as asked_for_nothing:
        click.echo(asked_for_nothing.format_message(), err=True)
    except click.ClickException as misuse:
        where = misuse.ctx.command_path if isinstance(misuse, click.UsageError) and misuse.ctx else "highwater"
        click.echo(f"{where}: {' '.join(misuse.format_message().split())}", err=True)
    except click.Abort:
        return _INTERRUPTED
    except SystemExit:
        # how click ends where nobody reads any more
        return _BROKEN_PIPE
    return _MISUSE
