"""What must never be in the project's files."""

from __future__ import annotations

import re
import subprocess

from tests.cdk_cli import ROOT


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name]


def _texts() -> dict[str, str]:
    texts = {}
    for name in _tracked():
        path = ROOT / name
        if path.is_file():
            try:
                texts[name] = path.read_text()
            except UnicodeDecodeError:
                continue
    return texts


def test_no_file_names_a_package_index_or_a_machine() -> None:
    # put together here, so that this file does not name them either
    words = ["pypi" + ".org", "files.python" + "hosted", "registry.npm" + "js", "/ro" + "ot/", "/wo" + "rk/"]
    found = [f"{name}: {word}" for name, text in _texts().items() for word in words if word in text]
    assert found == []


def test_no_source_file_is_too_long_to_read_in_one_sitting() -> None:
    long = [
        f"{name}: {lines}"
        for name, text in _texts().items()
        if re.match(r"(constructs_pkg|lambda_src|lab_src|examples|benchmarks)/.*\.py$", name)
        and (lines := text.count("\n")) > 420
    ]
    assert long == []


def test_lock_files_pin_everything() -> None:
    requirements = (ROOT / "requirements-dev.txt").read_text()
    pinned = re.findall(r"^[\w.-]+==", requirements, re.MULTILINE)
    named = re.findall(r"^[A-Za-z][\w.-]*", requirements, re.MULTILINE)
    assert len(pinned) == len(named) > 50
    assert requirements.count("--hash=sha256:") > len(pinned)
    assert '"aws-cdk": "2.1148.1"' in (ROOT / "package.json").read_text()
