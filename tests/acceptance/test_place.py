"""Nothing that a terminal still has from other work aims the suite elsewhere, and profiles that ask are refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import boto3
import pytest

from acceptance.parts import PARTS, choose
from acceptance.place import AccountError, Place, forget_other_places, open_account
from highwater.core import HighwaterError

ELSEWHERE = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_PROFILE": "production",
    "AWS_ACCESS_KEY_ID": "AKIAPRODUCTION",
    "AWS_SESSION_TOKEN": "a-token",
    "AWS_REGION": "ap-south-1",
    "CDK_DEFAULT_ACCOUNT": "999999999999",
}

DEVICE = "arn:aws:iam::123456789012:mfa/me"
CONFIG = f"""
[profile asks]
role_arn = arn:aws:iam::123456789012:role/Tester
source_profile = base
mfa_serial = {DEVICE}
[profile above]
role_arn = arn:aws:iam::123456789012:role/Other
source_profile = asks
[profile base]
region = eu-west-1
"""


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """What is forgotten here is there again for the tests that follow."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def test_variables_that_say_where_aws_is_are_forgotten_but_for_the_files_of_profiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ELSEWHERE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/some/config")
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    forget_other_places()
    assert {name for name in os.environ if name.startswith(("AWS_", "CDK_DEFAULT_"))} == {"AWS_CONFIG_FILE"}


def test_cdk_gets_the_profile_and_nothing_else_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ELSEWHERE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_CA_BUNDLE", "/some/bundle")
    monkeypatch.delenv("AWS_CONFIG_FILE", raising=False)
    monkeypatch.delenv("AWS_PROFILE")
    forget_other_places()
    place = Place("123456789012", "eu-west-1", boto3.Session().client, "default")
    told = {name: value for name, value in place.environment().items() if name.startswith(("AWS_", "CDK_DEFAULT_"))}
    assert told == {
        "AWS_PROFILE": "default",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "CDK_DEFAULT_ACCOUNT": "123456789012",
        "CDK_DEFAULT_REGION": "eu-west-1",
        "AWS_CA_BUNDLE": "/some/bundle",
    }
    assert place.title == "account 123456789012, eu-west-1"


def test_parts_are_chosen_by_name_and_run_in_the_suites_order() -> None:
    assert choose("") == PARTS
    assert [part.name for part in choose("surge, windows")] == ["windows", "surge"]
    names = ", ".join(part.name for part in PARTS)
    with pytest.raises(HighwaterError) as refused:
        choose("windows sirges")
    assert str(refused.value) == f"PARTS has sirges; the parts are {names}"


def test_watches_end_when_what_runs_beside_them_fails() -> None:
    place = Place("123456789012", "eu-west-1", boto3.Session().client, "default")
    ended: list[str] = []

    def fail() -> None:
        raise HighwaterError("no table")

    def watch() -> None:
        try:
            place.let_pass(timedelta(hours=1))
        except AccountError as error:
            ended.append(str(error))

    with pytest.raises(HighwaterError, match="no table"):
        place.side_by_side([], fail, watch)
    assert ended == ["ended, as what ran beside it did"]
    # the next part waits as always
    place.let_pass(timedelta(milliseconds=1))


def test_watches_return_what_they_saw() -> None:
    place = Place("123456789012", "eu-west-1", boto3.Session().client, "default")
    assert place.side_by_side([], lambda: 1, lambda: 2) == [1, 2]


@pytest.mark.parametrize("profile", ["asks", "above"])
def test_profile_that_asks_for_a_code_is_refused(profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(CONFIG)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(AccountError) as refused:
        open_account(profile, "123456789012", "eu-west-1")
    assert str(refused.value) == (
        f"profile '{profile}' asks for a code of {DEVICE}, which nobody gives during a run; make a profile of the "
        "credentials that aws sts assume-role or get-session-token prints, and name that one"
    )
