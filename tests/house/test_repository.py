"""What must never be in the project's files."""

from __future__ import annotations

import ast
import re
import subprocess

import pytest

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


def test_nothing_says_to_install_a_package_by_a_name_that_anybody_may_take() -> None:
    """Until the packages are on an index, a command that names one may install what a stranger has put there."""
    commands = "pip install|pip3 install|pipx install|pipx run|uv tool install|uv pip install|uv add|uvx|poetry add"
    by_name = re.compile(rf"\b(?:{commands}) .*\b(?:cdk-highwater|highwater-(?:runtime|lab|local))\b(?![/.])")
    found = [f"{name}: {match[0]}" for name, text in _texts().items() for match in by_name.finditer(text)]
    assert found == []
    said = "nothing by"
    pages = ["README.md", "docs/quickstart.md", "docs/install.md"]
    texts = {page: " ".join((ROOT / page).read_text().split()) for page in pages}
    for page, text in texts.items():
        assert re.search(rf"{said} (?:its name|these names), which anybody may take on an index", text), page
        assert text.index(said) < text.index("pip install"), f"{page} says it before the first command"


def test_one_function_reads_json_in_the_runtime() -> None:
    """What others wrote may be anything, and `read_document` alone knows all that the library's parser raises."""
    runtime = ROOT / "lambda_src" / "highwater"
    found = {path.name for path in runtime.rglob("*.py") if re.search(r"\bjson\.loads?\(", path.read_text())}
    assert found == {"documents.py"}


def test_no_source_file_is_too_long_to_read_in_one_sitting() -> None:
    long = [
        f"{name}: {lines}"
        for name, text in _texts().items()
        if re.match(r"(constructs_pkg|lambda_src|lab_src|local_src|examples|acceptance|benchmarks|tests)/.*\.py$", name)
        and (lines := text.count("\n")) > 600
    ]
    assert long == []


def test_no_function_of_the_lab_but_a_commands_own_has_more_than_twelve_parameters() -> None:
    many = [
        f"{name}: {node.name}"
        for name, text in _texts().items()
        if name.startswith("lab_src/") and name.endswith(".py")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and not node.name.endswith("_command")
        and len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]) - ("self" in ast.dump(node.args)) > 12
    ]
    assert many == []


def test_each_class_has_a_name_of_its_own() -> None:
    """Of those that are not private to a file: a name that two have is looked for twice."""
    files: dict[str, list[str]] = {}
    for name, text in _texts().items():
        if re.match(r"(constructs_pkg|lambda_src|lab_src|local_src)/.*\.py$", name):
            for each in re.findall(r"^class ([A-Z]\w*)", text, re.MULTILINE):
                files.setdefault(each, []).append(name)
    assert {each: found for each, found in files.items() if len(found) > 1} == {}


@pytest.mark.parametrize("file", ["requirements-dev.txt", "requirements-local.txt", "requirements-release.txt"])
def test_lock_files_pin_everything(file: str) -> None:
    requirements = (ROOT / file).read_text()
    pinned = re.findall(r"^[\w.-]+==", requirements, re.MULTILINE)
    named = re.findall(r"^[A-Za-z][\w.-]*", requirements, re.MULTILINE)
    assert len(pinned) == len(named) > 40
    assert requirements.count("--hash=sha256:") > len(pinned)
    assert '"aws-cdk": "2.1148.1"' in (ROOT / "package.json").read_text()


def test_files_that_the_page_of_the_house_names_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    roots = ("", "lambda_src/highwater/", "lab_src/highwater_lab/", "local_src/highwater_local/")
    named = re.findall(r"`([\w/]+(?:\.py|/))`", page)
    missing = [name for name in named if not any((ROOT / root / name).exists() for root in roots)]
    assert missing == []
    assert len(named) > 20


def test_no_test_names_the_hash_of_a_logical_id() -> None:
    # the CDK ends a logical id with eight digits of a hash of the construct's path
    hashed = re.compile(r"[\"'][A-Za-z]+[A-Za-z0-9]*[0-9A-F]{8}[\"']")
    found = [
        f"{name}: {match[0]}"
        for name, text in _texts().items()
        if re.match(r"tests/(constructs|deploys|rehearse|security)/.*\.py$", name)
        for match in hashed.finditer(text)
        if re.search(r"[0-9]", match[0][-9:]) and re.search(r"[A-F]", match[0][-9:])
    ]
    assert found == []


def test_make_help_fits_a_newcomer_and_help_all_has_every_target() -> None:
    shown = {
        name: [
            line.split()[0]
            for line in subprocess.run(
                ["make", "--no-print-directory", name], cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout.splitlines()
        ]
        for name in ("help", "help-all")
    }
    targets = set(re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert len(shown["help"]) <= 12
    assert "help-all" in shown["help"]
    assert set(shown["help-all"]) == targets - {"tools"}


def test_one_file_sets_how_often_botocore_sends_a_request() -> None:
    """Each number of attempts has its purpose beside it there; tests and benchmarks may try others."""
    folders = ("lambda_src/", "lab_src/", "local_src/", "constructs_pkg/", "acceptance/", "examples/")
    found = {
        name
        for name, text in _texts().items()
        if name.startswith(folders) and name.endswith(".py")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) == "Config"
        and any(keyword.arg in ("retries", None) for keyword in node.keywords)
    }
    assert found == {"lambda_src/highwater/calls/attempts.py"}
