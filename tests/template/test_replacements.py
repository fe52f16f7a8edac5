"""The list of properties that replace a resource has all that CloudFormation's machine-readable sources name."""

from __future__ import annotations

import gzip
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.template.replacements import REPLACED_FOR, SIMPLE_TABLE

ROOT = Path(__file__).parents[2]
# The specification has the update types of an old one for SAM's type. SAM makes an AWS::DynamoDB::Table of it, which
# CloudFormation changes in place for these (AWS SAM Developer Guide, AWS::Serverless::SimpleTable, read 2026-11-29).
NOT_FOLLOWED = {SIMPLE_TABLE: {"ProvisionedThroughput", "SSESpecification", "Tags"}}


@cache
def _specification() -> dict[str, dict[str, Any]]:
    """The service specification in the CDK's CLI, by resource type."""
    packed = (ROOT / "node_modules" / "aws-cdk" / "db.json.gz").read_bytes()
    resources = json.loads(gzip.decompress(packed))["schema"]["resource"]["entities"]
    return {each["cloudFormationType"]: each["properties"] for each in resources}


def _by_specification(kind: str) -> set[str]:
    return {name for name, each in _specification()[kind].items() if each.get("causesReplacement") in ("yes", "maybe")}


def _by_schema(kind: str) -> set[str]:
    """The properties that the registry's schema names, as cfn-lint packs it; SAM's type has none."""
    found = find_spec("cfnlint.data.schemas")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent
    schemas = json.loads((folder / "providers" / "us-east-1.json").read_text())
    if kind not in schemas:
        return set()
    schema = json.loads((folder / "resources" / f"{schemas[kind]}.json").read_text())
    paths = [*schema.get("createOnlyProperties", ()), *schema.get("conditionalCreateOnlyProperties", ())]
    return {path.split("/")[2] for path in paths}


@pytest.mark.parametrize("kind", REPLACED_FOR)
def test_list_has_each_property_that_a_source_names(kind: str) -> None:
    named = _by_specification(kind) | _by_schema(kind)
    assert named, f"neither source names a property of {kind}"
    assert named - NOT_FOLLOWED.get(kind, set()) <= REPLACED_FOR[kind].keys()


def test_both_sources_are_read() -> None:
    assert _by_schema("AWS::DynamoDB::Table") == {"TableName", "ImportSourceSpecification", "KeySchema"}
    assert "LocalSecondaryIndexes" in _by_specification("AWS::DynamoDB::GlobalTable")
