"""What `make lock-check` says of locks: what does not fit, what is old, what is vulnerable, and what it cannot know."""

from __future__ import annotations

from release.locks import GROUPS, advisories, lock_file, newer, pinned, reached

LOCK = """\
boto3==1.44.3 \\
    --hash=sha256:aa
numpy==2.2.6 ; python_full_version < '3.12' \\
    --hash=sha256:bb
numpy==2.4.1 ; python_full_version >= '3.12' \\
    --hash=sha256:cc
zipp==4.1 \\
    --hash=sha256:dd
"""


def test_each_group_has_a_lock_that_fits_its_packages() -> None:
    for group in GROUPS:
        assert pinned(lock_file(group).read_text())


def test_package_with_a_version_for_each_python_has_both() -> None:
    assert pinned(LOCK) == {"boto3": "1.44.3", "numpy": "2.2.6 and 2.4.1", "zipp": "4.1"}


def test_each_package_that_differs_is_one_line() -> None:
    compiled = LOCK.replace("1.44.3", "1.45.0").replace("zipp==4.1", "click==8.3")
    assert newer(LOCK, LOCK) == []
    assert newer(LOCK, compiled) == ["boto3: 1.44.3 → 1.45.0", "click: none → 8.3", "zipp: 4.1 → none"]


def test_vulnerable_version_is_named_with_the_one_that_mends_it() -> None:
    report = {
        "dependencies": [
            {"name": "boto3", "version": "1.44.3", "vulns": []},
            {"name": "zipp", "version": "4.1", "vulns": [{"id": "PYSEC-2026-7", "fix_versions": ["4.1.1", "4.2"]}]},
            {"name": "click", "version": "8.3", "vulns": [{"id": "PYSEC-2026-8", "fix_versions": []}]},
            {"name": "numpy", "skip_reason": "Dependency not found"},
        ],
        "fixes": [],
    }
    found, asked, packages = advisories(report)
    assert found == [
        "zipp 4.1: PYSEC-2026-7, mended in 4.1.1 or 4.2",
        "click 8.3: PYSEC-2026-8, mended in no version yet",
    ]
    assert reached("dev", asked, packages) == (
        "requirements-dev.txt: advisories: 3 of 4 packages asked, the list does not know the others"
    )


def test_list_that_cannot_be_reached_is_not_taken_for_a_clean_one() -> None:
    found, asked, packages = advisories({"dependencies": [{"name": "zipp", "skip_reason": "not found"}]})
    assert (found, asked) == ([], 0)
    assert reached("local", asked, packages) == (
        "requirements-local.txt: advisories: the list cannot be reached from here, so nothing is known of vulnerable "
        "versions"
    )
    assert reached("dev", 149, 149) == "requirements-dev.txt: advisories: 149 packages asked"
