"""What every command says where it has no credentials, or a number that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Command

TABLE = '{"Resources": {"A": {"Type": "AWS::DynamoDB::Table", "Properties": {"BillingMode": "PAY_PER_REQUEST"}}}}'
FIX = "; give --profile, set AWS_PROFILE, or sign in with aws sso login or aws configure\n"


@pytest.mark.parametrize(
    "line",
    [
        "audit --days 1 --price-only",
        "doctor",
        "traffic fetch orders",
        "rehearse t.json --live",
        "simulate t.json --live-table orders",
        "recommend --live-table orders",
        "status",
        "explain orders",
        "pulses orders",
        "pause orders",
        "boost list orders",
        "scan orders --read 5 --to x",
        "load orders --from t.json --write 5",
        "jobs list",
    ],
)
def test_command_without_credentials_says_how_to_have_them(command: Command, tmp_path: Path, line: str) -> None:
    (tmp_path / "t.json").write_text(TABLE)
    done = command(*line.split(), AWS_REGION="eu-west-1")
    assert done.returncode in (1, 2), done
    assert "credentials" in done.stderr, done
    assert done.stderr.endswith(FIX), done
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "option", "value"),
    [
        ("audit --days 2.5", "--days", "2.5"),
        ("traffic fetch orders --days 2.5", "--days", "2.5"),
        ("recommend --scenario step --table-quota 1e4", "--table-quota", "1e4"),
        ("boost run orders --write 3.5 --for 5m", "--write", "3.5"),
    ],
)
def test_fraction_is_said_to_be_no_whole_number(command: Command, line: str, option: str, value: str) -> None:
    done = command(*line.split())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"Invalid value for '{option}': '{value}' is not a valid whole number." in done.stderr
