"""The conformance suite is found, laid out beside this project's tests, and its result is told by tier."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.suite import OWN, SUCCESSOR, SUITE, Result, find_suite, lay_out, lines_of, main, results_by_tier


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a checkout of the suite has, as far as it is looked at, and what is not needed of it."""
    folder = tmp_path / "checkout"
    sources = ("vitest.config.ts", "src/client.ts", "src/helpers.ts", "tests/tier1/a.test.ts")
    for file in (*sources, "node_modules/vitest/vitest.mjs", ".git/x"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(file)
    _write_package(folder, "dynamodb-conformance", "3.5.0")
    return folder


def _write_package(folder: Path, name: str, version: str) -> None:
    (folder / "package.json").write_text(json.dumps({"name": name, "version": version}))


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("", f"CONFORMANCE: got nothing; name a checkout of {SUITE}: make conformance CONFORMANCE=folder"),
        (
            "/no/such/folder",
            f"CONFORMANCE: '/no/such/folder' is no checkout of {SUITE} or {SUCCESSOR}, as it has no package.json; "
            "clone one of them there",
        ),
    ],
)
def test_one_line_says_which_folder_is_wanted(capsys: pytest.CaptureFixture[str], named: str, message: str) -> None:
    assert main([named] if named else []) == 2
    assert capsys.readouterr().err == f"conformance: {message}\n"


def test_one_line_says_what_a_folder_lacks(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "node_modules" / "vitest" / "vitest.mjs").unlink()
    assert main([str(checkout)]) == 2
    assert capsys.readouterr().err == (
        f"conformance: CONFORMANCE: '{checkout}' has no node_modules/vitest/vitest.mjs; run npm install there first\n"
    )
    (checkout / "src" / "client.ts").unlink()
    assert main([str(checkout)]) == 2
    assert capsys.readouterr().err == (
        f"conformance: CONFORMANCE: '{checkout}' is no checkout of {SUITE} or {SUCCESSOR}, as it has no src/client.ts; "
        "clone one of them there\n"
    )


@pytest.mark.parametrize("version", ["1.3.0", "2.1.0", "3.5.0", "3.6.1"])
def test_suite_and_its_successor_are_found(checkout: Path, version: str) -> None:
    _write_package(checkout, "dynamodb-conformance", version)
    assert find_suite(str(checkout)) == checkout


@pytest.mark.parametrize(("name", "version"), [("dynamodb-conformance", "4.0.0"), ("alternator", "3.5.0")])
def test_checkout_of_a_layout_that_is_not_known_is_refused(
    checkout: Path, capsys: pytest.CaptureFixture[str], name: str, version: str
) -> None:
    _write_package(checkout, name, version)
    assert main([str(checkout)]) == 2
    assert capsys.readouterr().err == (
        f"conformance: CONFORMANCE: the package.json of '{checkout}' has the name '{name}' and the version "
        f"'{version}'; allowed: 'dynamodb-conformance' and a version from 1 to 3, whose layout is known; check out an "
        "older version\n"
    )


def test_tests_of_both_run_in_one_folder_and_the_checkout_stays_as_it_is(checkout: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    folder = tmp_path / "laid-out"
    lay_out(find_suite(str(checkout)), folder)
    assert (folder / "tests" / "tier1" / "a.test.ts").read_text() == "tests/tier1/a.test.ts"
    own = {path.name for path in OWN.iterdir()}
    assert {path.name for path in (folder / "tests" / "capacity").iterdir()} == own
    assert "reasons.test.ts" in own
    assert (folder / "node_modules").resolve() == checkout / "node_modules"
    assert not (folder / ".git").exists()
    assert {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()} == before


def test_result_is_told_by_tier(tmp_path: Path) -> None:
    def file(name: str, *statuses: str) -> dict[str, object]:
        tests = [{"status": status} for status in statuses]
        return {"name": str(tmp_path / "tests" / name), "assertionResults": tests}

    report = {
        "testResults": [
            file("tier3/limits/a.test.ts", "passed", "failed"),
            file("tier1/query/b.test.ts", "passed"),
            file("capacity/burst.test.ts", "passed", "skipped", "passed"),
            file("tier3/limits/c.test.ts", "passed", "pending"),
        ]
    }
    results = results_by_tier(report, tmp_path)
    assert results == {"tier1": Result(1, 0, 1), "tier3": Result(2, 1, 4), "capacity": Result(2, 0, 3)}
    assert list(lines_of(results, "eu-west-1")) == [
        "the suite in eu-west-1: tier 1 1 of 1 (100.0 %), tier 3 2 of 4 (50.0 %); together 3 of 5 (60.0 %)",
        "divergence 20.0 %, coverage 80.0 %",
        "this project's tests of capacity: 2 of 3 (66.7 %)",
    ]
    only = {"capacity": Result(2, 0, 3)}
    assert list(lines_of(only, "eu-west-1")) == ["this project's tests of capacity: 2 of 3 (66.7 %)"]
    assert list(lines_of({}, "eu-west-1")) == []


def test_each_test_of_capacity_names_its_source() -> None:
    files = sorted(OWN.glob("*.test.ts"))
    assert len(files) == 3
    for path in files:
        text = path.read_text()
        assert "documentation" in text.split("describe(")[0], path.name
        # it imports the suite's files and its neighbours only, so that it can be copied into the suite
        sources = [
            line.split("from ")[1].strip("'")
            for line in text.splitlines()
            if line.startswith(("import ", "} from ")) and "from " in line
        ]
        assert set(sources) <= {"@aws-sdk/client-dynamodb", "../../src/client.js", "../../src/helpers.js", "./once.js"}
