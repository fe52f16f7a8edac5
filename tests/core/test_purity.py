"""The core is pure: it pulls in no cloud library, and says what it offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import highwater.core as core


def test_import_of_the_core_in_a_fresh_interpreter_brings_only_the_standard_library() -> None:
    script = (
        "import sys; before = set(sys.modules); import highwater.core; "
        "names = {name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names; "
        "print(sorted(name for name in names if not name.startswith('_sysconfigdata')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['highwater']\n"


def test_all_is_sorted_without_repeats_and_there() -> None:
    assert core.__all__ == sorted(set(core.__all__))
    assert all(hasattr(core, name) for name in core.__all__)


@pytest.mark.parametrize("name", core.__all__)
def test_public_name_has_a_docstring_of_its_own(name: str) -> None:
    text = getattr(core, name).__doc__
    assert text
    # what a dataclass writes for itself is a signature, not a docstring
    assert not text.startswith(f"{name}(")
