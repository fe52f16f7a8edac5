"""Tab completion of `highwater`, in a Bash that has read the script that docs/install.md writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.command import SCRIPT, Command

_BASH = """
. ./complete.bash
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_highwater_completion highwater
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        pytest.param("highwater re", ["recommend", "rehearse", "resume"], id="subcommand"),
        pytest.param("highwater status --re", ["--region"], id="option"),
    ],
)
def test_bash_completes_subcommands_and_options(command: Command, words: str, completed: list[str]) -> None:
    written = command(_HIGHWATER_COMPLETE="bash_source")
    assert (written.returncode, written.stderr) == (0, "")
    (command.folder / "complete.bash").write_text(written.stdout)
    path = f"{Path(SCRIPT).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", _BASH.format(words=words)],
        cwd=command.folder,
        env=command.environment(PATH=path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.splitlines(), done.stderr) == (completed, "")


@pytest.mark.parametrize(
    ("shell", "start"), [("zsh", "#compdef highwater\n"), ("fish", "function _highwater_completion")]
)
def test_other_shells_have_their_scripts(command: Command, shell: str, start: str) -> None:
    written = command(_HIGHWATER_COMPLETE=f"{shell}_source")
    assert (written.returncode, written.stderr, written.stdout.startswith(start)) == (0, "", True)
