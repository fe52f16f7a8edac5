"""The page on tables of others, as it is printed: tables of four kinds of stacks, and one app that scales them all."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk
import constructs
import hcl2
import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.template import load_templates, read_app
from tests.cdk_cli import CDK, ROOT, CdkCli, bootstrapped_cloud
from tests.command import Command
from tests.deploys.live import floor, session_of, set_floor, targets, units, until
from tests.local.world import WRITE

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud-others")]

PAGE = (ROOT / "docs" / "tables-of-others.md").read_text()
# what aws-sam-translator 1.115.0 makes of the template of the page, written down 2026-11-28
TRANSLATED = ROOT / "tests" / "template" / "files" / "sam_translated.json"
# by table, units of reads and writes as its own stack declares them, and as they are to become
BEGINS = {
    "orders": (6, 9),
    "visits": (7, 8),
    "carts": (5, 4),
    "baskets": (5, 11),
    "sales": (4, 13),
    "events": (7, 12),
    "stock": (8, 14),
    "returns": (9, 15),
}
IMPORTED = dict.fromkeys(("orders", "stock", "sales"), (20, 30))
TAGGED = {"visits": (15, 25), "carts": (16, 26), "baskets": (17, 27), "events": (18, 28), "returns": (19, 29)}


def _block(language: str, holding: str = "") -> str:
    """The only fenced block of a language that has this text."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (one,) = (each for each in found if holding in each)
    return str(one)


def _file(name: str) -> str:
    """A file that a shell block of the page writes."""
    (text,) = re.findall(rf"{re.escape(name)} <<'\w+'\n(.*?)^[A-Z]+$", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def _quoted(check: str) -> list[str]:
    """What the page quotes of a check of the doctor."""
    quotes = re.findall(r"^> (.+(?:\n> .+)*)", PAGE, re.MULTILINE)
    return [each for each in (quote.replace("\n> ", " ") for quote in quotes) if f" {check}: " in each]


def _planned() -> dict[str, Any]:
    """The values of the table in the Terraform plan of the page."""
    (resource,) = json.loads(_file("plan.json"))["planned_values"]["root_module"]["resources"]
    values: dict[str, Any] = resource["values"]
    return values


@dataclass(frozen=True)
class Others:
    """A cloud with the page's tables and its app.

    Attributes:
        cli: The CDK CLI for it.
        folder: The folder of the app in JavaScript.
        assemblies: What was synthesized: `shop` of the app in JavaScript, `capacity` of the one in Python.
        begins: Units of the tables before the app in Python was deployed.
        second: What the doctor said of `orders` before that, with a scalable target that somebody had registered.
    """

    cli: CdkCli
    folder: Path
    assemblies: dict[str, Path]
    begins: dict[str, tuple[int, int]]
    second: list[str]

    @property
    def cloud(self) -> LocalCloud:
        """The cloud."""
        return self.cli.cloud


def _unpack(folder: Path) -> None:
    """Put the CDK's packages for JavaScript into `node_modules`: its wheels for Python have them in them."""
    for module in (aws_cdk, constructs):
        for archive in sorted(Path(str(module.__file__)).parent.glob("**/_jsii/*.jsii.tgz")):
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
            name = json.loads((folder / "package" / "package.json").read_text())["name"]
            place = folder / "node_modules" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            (folder / "package").rename(place)


def _synth(folder: Path, program: str, name: str) -> Path:
    done = subprocess.run(
        [CDK, "synth", "--quiet", "--no-notices", "--app", program, "--output", name],
        cwd=folder,
        env=os.environ | {"AWS_REGION": "us-east-1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder / name


def _owners(cloud: LocalCloud, folder: Path, *app: Path) -> list[str]:
    """What the doctor says of owners, without its fixes."""
    cloud.step(2)
    said = Command(folder, cloud.environment())("doctor", *map(str, app), "--only", "owners").stdout
    return [line.partition("; fix: ")[0] for line in said.splitlines() if " owners: " in line]


def _deregister(cloud: LocalCloud, table: str) -> None:
    """Deregister the target of a table's writes."""
    autoscaling = cloud.client("application-autoscaling")
    autoscaling.deregister_scalable_target(
        ServiceNamespace="dynamodb", ResourceId=f"table/{table}", ScalableDimension=WRITE
    )
    autoscaling.close()


def _create_others(cloud: LocalCloud) -> None:
    """Make the tables of SAM, of Terraform and by hand."""
    dynamodb, cloudformation = cloud.client("dynamodb"), cloud.client("cloudformation")
    cloudformation.create_stack(StackName="Sam", TemplateBody=TRANSLATED.read_text())
    plan = _planned()
    kinds = {each["name"]: each["type"] for each in plan["attribute"]}
    dynamodb.create_table(
        TableName=plan["name"],
        KeySchema=[{"AttributeName": plan["hash_key"], "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()],
        ProvisionedThroughput={
            "ReadCapacityUnits": plan["read_capacity"],
            "WriteCapacityUnits": plan["write_capacity"],
        },
        Tags=[{"Key": key, "Value": value} for key, value in plan["tags"].items()],
    )
    for name in ("stock", "returns"):
        dynamodb.create_table(**json.loads(_block("json", f'"{name}"')))
    dynamodb.close()
    cloudformation.close()


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Others]:
    folder = tmp_path_factory.mktemp("others")
    _unpack(folder)
    (folder / "shop.mjs").write_text(_block("ts"))
    (folder / "app.py").write_text(_block("python", "TaggedTables"))
    assemblies = {
        "shop": _synth(folder, "node shop.mjs", "shop"),
        "capacity": _synth(folder, f"{sys.executable} app.py", "capacity"),
    }
    with bootstrapped_cloud(folder, has_instant_updates=True) as cli:
        cli.go_to_noon()
        cli.deploy(assemblies["shop"])
        _create_others(cli.cloud)
        begins = {name: units(cli.cloud, name)[0] for name in BEGINS}
        set_floor(cli.cloud, "orders", 3, MaxCapacity=70)
        second = _owners(cli.cloud, folder, assemblies["capacity"])
        _deregister(cli.cloud, "orders")
        cli.deploy(assemblies["capacity"])
        yield Others(cli, folder, assemblies, begins, second)
    shutil.rmtree(folder / "node_modules")


def test_tables_of_all_stacks_get_the_floors_of_the_app_and_of_their_tags(others: Others) -> None:
    cloud = others.cloud
    assert others.begins == BEGINS
    assert {name: units(cloud, name)[0] for name in IMPORTED} == IMPORTED
    assert units(cloud, "orders") == [(20, 30), (20, 30)], "its index too"
    assert until(cloud, lambda: {name: units(cloud, name)[0] for name in TAGGED} == TAGGED, 6, seconds=60)
    own = {name: targets(cloud, name) for name in BEGINS}
    both = {"table read": (20, 800), "table write": (30, 1_000)}
    index = {"by-day read": (20, 800), "by-day write": (30, 1_000)}
    assert own == {
        **{name: {} for name in TAGGED},
        "carts": {"table read": (16, 500), "table write": (26, 700)},
        **dict.fromkeys(IMPORTED, both),
        "orders": both | index,
    }


def test_doctor_names_each_second_owner_as_the_page_says(others: Others, tmp_path: Path) -> None:
    cloud, shop, capacity = others.cloud, others.assemblies["shop"], others.assemblies["capacity"]
    by_hand, of_another, in_typescript, tagged = _quoted("owners")
    assert others.second == [by_hand]
    assert _owners(cloud, tmp_path, capacity) == [
        "ok      owners: nothing else scales 3 tables of the app, and no table has two scalers"
    ]
    assert of_another in _owners(cloud, tmp_path, shop)
    assert [line for line in _owners(cloud, tmp_path, shop) if "orders" not in line] == []

    scaling = "orders.autoScaleWriteCapacity({ minCapacity: 9, maxCapacity: 90 });"
    (others.folder / "scaling.mjs").write_text(_block("ts") + scaling)
    assert in_typescript in _owners(cloud, tmp_path, _synth(others.folder, "node scaling.mjs", "scaling"))

    set_floor(cloud, "events", 3, MaxCapacity=70)
    said = _owners(cloud, tmp_path)
    explained = Command(tmp_path, cloud.environment())("explain", "events").stdout
    _deregister(cloud, "events")
    assert said == [tagged]
    assert "left to Application Auto Scaling, which has a scalable target" in explained


def test_floors_by_tags_are_no_drift_of_the_stack_that_has_the_targets(others: Others, tmp_path: Path) -> None:
    others.cloud.step(2)
    command = Command(tmp_path, others.cloud.environment())
    said = command("doctor", str(others.assemblies["shop"]), "--only", "drift").stdout
    assert [line for line in said.splitlines() if "carts" in line] == []


def test_commands_read_tables_of_all_stacks(others: Others, tmp_path: Path) -> None:
    others.cloud.step(2)
    command = Command(tmp_path, others.cloud.environment())
    assert {each["table"] for each in json.loads(command("status", "--json").stdout)} >= set(BEGINS)
    audited = [line for line in command("audit", "--yes").stdout.splitlines() if "/us-east-1/" in line]
    assert {line.partition(":")[0].rpartition("/")[2] for line in audited} >= set(BEGINS)


@pytest.fixture(scope="module")
def loads(others: Others) -> dict[str, str]:
    """The environment of a program in the role `loader`, which may boost the table `prices`; nothing of it is ours."""
    cloud = others.cloud
    dynamodb, iam = cloud.client("dynamodb"), cloud.client("iam")
    dynamodb.create_table(**json.loads(_block("json", '"stock"')) | {"TableName": "prices"})
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "arn:aws:iam::000000000000:root"}}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    iam.create_role(RoleName="loader", AssumeRolePolicyDocument=policy)
    (others.folder / "loads.py").write_text(_block("python", "BoostCoordinator"))
    others.cli.deploy(_synth(others.folder, f"{sys.executable} loads.py", "loads"))
    ssm = cloud.client("ssm")
    (parameter,) = ssm.get_parameters_by_path(Path="/highwater/coordinators")["Parameters"]
    found: Any = session_of(cloud, "loader").get_credentials()
    keys = found.get_frozen_credentials()
    for each in (dynamodb, iam, ssm):
        each.close()
    return {
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": keys.access_key,
        "AWS_SECRET_ACCESS_KEY": keys.secret_key,
        "AWS_SESSION_TOKEN": keys.token,
        "URL": parameter["Value"],
    }


def test_program_without_python_boosts_by_signed_requests(
    others: Others, loads: dict[str, str], tmp_path: Path
) -> None:
    """The page's own command, which is `curl`, and its four requests."""
    cloud = others.cloud
    (line,) = re.findall(r"^    (curl .*)$", PAGE, re.MULTILINE)

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        (tmp_path / "boost.json").write_text(json.dumps(request))
        done = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env=os.environ | loads, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    begin, status, renew, release = json.loads(_block("json", '"begin"'))
    assert ask(begin)["outcome"] == "whole"
    assert until(cloud, lambda: bool(ask(status)["is_ready"]), 2, seconds=10)
    assert units(cloud, "prices") == [(20, 320)]
    assert ask(renew)["id"] == begin["id"]
    ask(release)
    assert until(cloud, lambda: floor(cloud, "prices") == 20, 2)


def test_template_of_sam_is_read_as_its_translator_deploys_it(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text(_file("template.yaml"))
    before, after = (
        {each.name: each.setup for each in read_app(load_templates(path)).tables}
        for path in (tmp_path / "template.yaml", TRANSLATED)
    )
    assert before == after
    assert sorted(before) == ["Baskets", "Sales"]


def test_code_of_terraform_is_that_of_the_plan_and_ignores_capacity() -> None:
    (resource,) = hcl2.loads(_block("hcl"))["resource"]
    ((kind, named),) = resource.items()
    ((name, code),) = named.items()
    plan = _planned()
    assert (kind, name) == ('"aws_dynamodb_table"', '"events"')
    # the parser keeps quotation marks
    bare = json.loads(json.dumps(code).replace('\\"', ""))
    assert bare["tags"] == plan["tags"]
    simple = ("name", "billing_mode", "hash_key", "read_capacity", "write_capacity")
    assert {key: bare[key] for key in simple} == {key: plan[key] for key in simple}
    ((attribute,), (lifecycle,)) = bare["attribute"], bare["lifecycle"]
    assert {key: attribute[key] for key in ("name", "type")} == plan["attribute"][0]
    assert lifecycle["ignore_changes"] == ["read_capacity", "write_capacity"]
