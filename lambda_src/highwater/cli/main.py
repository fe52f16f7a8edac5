"""The command `highwater`, with the subcommands of all installed distributions."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from highwater.terminal.console import hear_interrupts, inert, prepare_streams, say
from highwater.terminal.credentials import how_to_sign_in

if TYPE_CHECKING:
    import click

COMMANDS_GROUP = "highwater.commands"
# commands of another distribution, which a user may know from the documentation without having installed it
_LAB = "highwater-lab"
# a command here would be carried out, and on an index the name may be anybody's
_PAGE = "https://github.com/cdk-highwater/highwater/blob/main/docs/install.md"
_LAB_COMMANDS = (
    "audit",
    "check",
    "doctor",
    "local",
    "migrate",
    "prices",
    "recommend",
    "rehearse",
    "simulate",
    "traffic",
)
# what the commands are for, in the order of --help
_PURPOSES = {
    "Before a deploy": ("check", "rehearse", "simulate", "recommend", "migrate", "traffic", "prices", "shards"),
    "Live tables": ("doctor", "audit", "status", "explain", "pulses", "pause", "resume"),
    "Jobs": ("boost", "scan", "load", "jobs"),
    "An AWS endpoint on this machine": ("local",),
}
_MISUSE = 2
_LONGEST_ERROR = 300
_INTERRUPTED = 130
# the exit status that a shell reports for a process ended by SIGPIPE
_BROKEN_PIPE = 141


def main() -> None:
    """Run the command line. Exit status: 0 for success, 1 for a finding, 2 for misuse."""
    prepare_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # not where a shell started the command in the background, with Ctrl-C ignored
        hear_interrupts()
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


def _run() -> int:
    try:
        import click
    except ModuleNotFoundError:
        sys.stderr.write(
            "highwater: the command needs more libraries; install them with: pip install click rich zstandard\n"
        )
        return _MISUSE

    prints_traceback = False
    installed = {each.name: each for each in entry_points(group=COMMANDS_GROUP)}

    class ByPurpose(click.Group):
        """Lists its commands by purpose, and imports each when it is used: to import all takes longer than most run."""

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            if cmd_name not in installed:
                return super().get_command(ctx, cmd_name)
            command: click.Command = installed[cmd_name].load()
            return command

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            known = {name for names in _PURPOSES.values() for name in names}
            commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
            others = tuple(name for name in commands if name not in known)
            for purpose, names in {**_PURPOSES, "Other": others}.items():
                found = [(name, command) for name in names if (command := commands.get(name)) is not None]
                if found:
                    with formatter.section(purpose):
                        formatter.write_dl([(name, each.get_short_help_str(limit=90)) for name, each in found])

    # names are listed, and suggested where one is misspelt, without the commands that are installed
    names = [*map(_missing, _LAB_COMMANDS), *map(click.Command, installed)]

    @click.group(cls=ByPurpose, commands=names, context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(package_name="highwater-runtime", prog_name="highwater")
    @click.option("--debug", is_flag=True, help="Print the traceback of an unexpected error.")
    def highwater(debug: bool) -> None:
        """Manage provisioned capacity of DynamoDB tables."""
        nonlocal prints_traceback
        prints_traceback = debug

    try:
        # without standalone mode, click returns the exit status of the command
        return int(highwater(standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as no_arguments:
        click.echo(no_arguments.format_message(), err=True)
    except click.ClickException as misuse:
        where = misuse.ctx.command_path if isinstance(misuse, click.UsageError) and misuse.ctx else "highwater"
        say(f"{where}: {' '.join(misuse.format_message().split())}{how_to_sign_in(misuse)}", err=True)
    except click.Abort:
        return _INTERRUPTED
    except SystemExit as ended:
        # click exits with 0 after a shell's completion, and with 1 when the reader has closed the pipe
        return 0 if ended.code == 0 else _BROKEN_PIPE
    except OSError:
        raise
    except Exception as unforeseen:
        if prints_traceback:
            traceback.print_exc()
        # status 1 would say that a limit was passed
        what = " ".join(f"{type(unforeseen).__name__}: {unforeseen}".split())[:_LONGEST_ERROR]
        sys.stderr.write(
            f"highwater: unexpected error; please report it: {inert(what)}; for its traceback: highwater --debug ...\n"
        )
    return _MISUSE


def _missing(name: str) -> click.Command:
    """Return a command that only prints how to install the real one."""
    import click

    def tell() -> None:
        raise click.ClickException(f"{name} is part of {_LAB}; install it as {_PAGE} says")

    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    short = f"In another package: {_LAB}"
    return click.Command(name, callback=tell, short_help=short, context_settings=anything)
