"""`highwater check` and `assert_no_findings`: what is found in an app, without the CDK CLI."""

from __future__ import annotations

import json
import re
from pathlib import Path

import aws_cdk as cdk
import pytest

from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterMark, Window
from highwater_lab.template.document import TemplateError
from highwater_lab.testing import assert_no_findings
from tests.cdk_cli import ROOT
from tests.command import Command, refused
from tests.constructs.template_view import key, new_app, scalable_table

ABOVE = (
    "error: Prod/Shop/Jobs: window 'load' write_min of table write: got 4001, allowed: 1 to 4000 (max_capacity); raise "
    "max_capacity, or give the window write_max=4001 or more [highwater:windowAboveCeiling]"
)
APP = """
import os
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import Capacity, HighWaterMark, HighWaterTable, Window
app = cdk.App()
stack = cdk.Stack(cdk.Stage(app, "Prod"), "Shop")
capacity = Capacity.autoscaled(min_capacity=3, max_capacity=4_000)
units = int(app.node.try_get_context("units") or 4_001)
HighWaterTable(
    stack, "Jobs", partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
    read=capacity, write=capacity, high_water_mark=HighWaterMark.none(),
    windows=[Window.daily("load", start="08:00", end="10:00", timezone="UTC", write_min=units)],
)
app.synth()
"""


def test_example_has_no_errors(command: Command) -> None:
    """One of them: all are deployed by tests/examples."""
    done = command("check", str(ROOT / "examples" / "indexes" / "app.py"))
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"0 errors, \d+ warnings?", done.stdout.splitlines()[-1])
    # the CDK's own caches of the home, which is this folder too, but no cloud assembly
    assert {path.name for path in command.folder.iterdir()} <= {".cache", ".cdk"}


def test_findings_of_a_stage_are_printed_and_an_error_is_status_1(command: Command, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    done = command("check", "app.py")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"{ABOVE}\n1 error, 0 warnings\n"
    listed = json.loads(command("check", "app.py", "--json").stdout)
    assert listed == {
        "findings": [
            {
                "severity": "error",
                "id": "highwater:windowAboveCeiling",
                "where": "Prod/Shop/Jobs",
                "text": ABOVE.removeprefix("error: "),
            }
        ]
    }


def test_what_an_app_prints_goes_to_standard_error(command: Command, tmp_path: Path) -> None:
    printed = 'import sys\nprint("stage: prod")\nprint("no VPC", file=sys.stderr)\nprint("synthesized")\n'
    (tmp_path / "app.py").write_text(printed + APP)
    done = command("check", "app.py", "--json")
    assert (done.returncode, done.stderr) == (1, "stage: prod\nno VPC\nsynthesized\n")
    assert [each["where"] for each in json.loads(done.stdout)["findings"]] == ["Prod/Shop/Jobs"]
    (tmp_path / "app.py").write_text(printed + "sys.exit('no account')\n")
    failed = command("check", "app.py")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == (
        "stage: prod\nno VPC\nsynthesized\nno account\n"
        "highwater check: app.py: fails when it runs: no account; run it by itself: python app.py\n"
    )


def test_context_of_files_and_options_reaches_the_app(command: Command, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "cdk.json").write_text('{"app": "python app.py", "context": {"units": "4000"}}')
    fine = command("check", "app.py").stdout.splitlines()
    assert [line.partition("; ")[0] for line in fine] == [
        "info: Prod/Shop: the stack: there always is drift, as capacity and floors change without a deploy",
        "info: Prod/Shop: the stack: managed tables and scalers add 14 resources, and target tracking makes 8 alarms "
        "of its own",
        "info: Prod/Shop/Jobs/Capacity: declared capacity: at least $238.78 a month at us-east-1 prices, $237.07 of "
        "them for windows, for floors of 3 RCU and 3 WCU",
        "0 errors, 0 warnings",
    ]
    assert command("check", "app.py", "-c", "units=4001").stdout.startswith(ABOVE)


def _with_low_index(app: cdk.App) -> None:
    low = Capacity.autoscaled(min_capacity=4, max_capacity=50)
    index = GlobalSecondaryIndex(index_name="rare", partition_key=key("r"), write=low)
    scalable_table(cdk.Stack(app, "Shop"), indexes=[index], high_water_mark=HighWaterMark.none())


def test_warning_is_status_1_only_if_strict(command: Command, tmp_path: Path) -> None:
    app = new_app(outdir=str(tmp_path / "cdk.out"))
    _with_low_index(app)
    app.synth()
    plain, strict = command("check", "cdk.out"), command("check", "cdk.out", "--strict")
    assert (plain.returncode, strict.returncode) == (0, 1)
    assert plain.stdout == strict.stdout
    assert plain.stdout.startswith("warning: Shop/Jobs")
    assert plain.stdout.endswith("\n0 errors, 1 warning\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["nowhere.py"],
            "nowhere.py: does not exist; give the app's Python file, or the folder that cdk synth wrote",
        ),
        (
            ["empty"],
            "empty: is not a cloud assembly: manifest.json cannot be read: No such file or directory; give the folder "
            "that cdk synth wrote, such as cdk.out",
        ),
        (
            ["empty", "-c", "a=b"],
            "--context is for an app that is run; remove it for a folder that is synthesized already",
        ),
        (["silent.py", "-c", "a"], "--context: got 'a', allowed: KEY=VALUE, such as stage=prod"),
        (["silent.py"], "silent.py: wrote no cloud assembly; end it with app.synth(), and give App no outdir"),
        (
            ["broken.py"],
            "broken.py: fails when it runs: ModuleNotFoundError: No module named 'nothing'; run it by itself: python "
            "broken.py",
        ),
    ],
)
def test_misuse_is_told_in_one_line(command: Command, tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "silent.py").write_text("")
    (tmp_path / "broken.py").write_text("import nothing\n")
    # an app that fails prints its own traceback before
    done = command("check", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"highwater check: {said}"


def test_context_file_that_cannot_be_read_is_told(command: Command, tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text("")
    (tmp_path / "cdk.json").write_text("{")
    said = refused(command("check", "silent.py"))
    assert said.startswith("highwater check: cdk.json: cannot be read as the CDK's context: Expecting property name")


def test_app_without_findings_passes() -> None:
    app = new_app()
    scalable_table(cdk.Stack(app, "Shop"))
    assert_no_findings(app)  # what is for information only does not count


def test_findings_fail_a_test_with_a_line_for_each(tmp_path: Path) -> None:
    app = new_app(outdir=str(tmp_path / "cdk.out"))
    _with_low_index(app)
    window = Window.daily("load", start="08:00", end="10:00", timezone="UTC", write_min=4_001)
    stage = cdk.Stage(app, "Prod")
    scalable_table(cdk.Stack(stage, "Shop"), windows=[window], high_water_mark=HighWaterMark.none())
    for subject in (app, tmp_path / "cdk.out", str(tmp_path / "cdk.out")):
        with pytest.raises(AssertionError) as failed:
            assert_no_findings(subject)
        error, warning = str(failed.value).splitlines()
        assert error == ABOVE
        assert re.fullmatch(r"warning: Shop/Jobs.*: .*; .* \[highwater:indexBelowTable\]", warning)
    assert_no_findings(app, allow=("highwater:indexBelowTable", "highwater:windowAboveCeiling"))


def test_misuse_of_the_assertion_is_told(tmp_path: Path) -> None:
    with pytest.raises(TypeError) as wrong:
        assert_no_findings(3)
    assert str(wrong.value) == "app: got a int, allowed: an aws_cdk.App or Stage, or a folder such as 'cdk.out'"
    with pytest.raises(TypeError) as text:
        assert_no_findings(tmp_path, allow="highwater:x")
    assert str(text.value) == "allow: got the text 'highwater:x', allowed: a collection of ids; write ['highwater:x']"
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(TemplateError) as broken:
        assert_no_findings(tmp_path)
    place = tmp_path / "manifest.json"
    assert str(broken.value) == f"{place}: is not a manifest of a cloud assembly; synthesize the app again"
