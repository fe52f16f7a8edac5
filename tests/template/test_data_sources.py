"""Tables that a Terraform plan scales and does not make: their capacity is in data sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from highwater_lab.template import load_prior, load_templates, read_app
from tests.template.plans import INDEX, Document, plan, policy, saved, state, table, target


def _read_before(**values: object) -> Document:
    """The data source of the table `orders`, which Terraform reads before it plans: 500 and 2,500 units."""
    given = {"name": "orders", "billing_mode": "PROVISIONED", "read_capacity": 500, "write_capacity": 2_500} | values
    made = {"address": "data.aws_dynamodb_table.it", "mode": "data", "type": "aws_dynamodb_table", "name": "it"}
    return made | {"values": given}


@pytest.mark.parametrize("region", [None, "eu-west-1"])
def test_table_that_a_plan_only_reads_has_the_units_that_it_has(tmp_path: Path, region: str | None) -> None:
    arn = "arn:aws:dynamodb:eu-west-1:111122223333:table/orders"
    data = _read_before(global_secondary_index=[INDEX], table_class="STANDARD_INFREQUENT_ACCESS", arn=arn)
    other = _read_before(name="carts", arn=arn) | {"address": "data.aws_dynamodb_table.other"}
    documents = {
        "plan": plan(target(), policy(), prior=(data, other), region=region),
        "state": state(data, other, target(), policy()),
    }
    for name, document in documents.items():
        (listed,) = read_app(load_templates(saved(tmp_path, document))).tables
        assert listed.setup is not None, name
        table, index = listed.setup.resources
        assert (table.read.units, table.write.units, table.write.min, table.write.max) == (500, 2_500, 7, 70), name
        assert (index.index, index.read.units, index.write.units) == ("by_state", 21, 22)
        assert (listed.setup.region, listed.setup.is_infrequent_access, listed.name) == ("eu-west-1", True, "orders")
        assert listed.setup.notes == (
            "orders is not defined in this plan: its capacity is that of data.aws_dynamodb_table.it",
        )


@pytest.mark.parametrize(
    "data",
    [
        _read_before(name="carts"),
        _read_before(arn="arn:aws:dynamodb:us-east-1:111122223333:table/orders"),
        _read_before() | {"mode": "managed", "type": "aws_dynamodb_tag"},
    ],
    ids=["of another table", "of another region", "of another kind"],
)
def test_table_that_a_plan_does_not_read_is_taken_to_have_a_unit(tmp_path: Path, data: Document) -> None:
    written = target(region="eu-west-1")
    (listed,) = read_app(load_templates(saved(tmp_path, plan(written, policy(), prior=(data,))))).tables
    assert listed.setup is not None
    assert listed.setup.notes == (
        "orders is not defined in this plan: capacity without a scalable target is taken to be 1 unit",
    )


def test_data_source_is_no_table_of_the_plan(tmp_path: Path) -> None:
    file = saved(tmp_path, plan(table(name="carts"), prior=(_read_before(),)))
    assert [each.physical for each in read_app(load_templates(file)).tables] == ["carts"]
    assert read_app(load_prior(file)).tables == ()
