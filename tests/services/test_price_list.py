"""Price files made from AWS's price list."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from highwater_lab.services.prices import PriceError, price_file

TODAY = date(2026, 11, 23)
USAGES = ("WriteCapacityUnit-Hrs", "ReadCapacityUnit-Hrs", "WriteRequestUnits", "ReadRequestUnits")


def _offers(*rates: tuple[str, str, list[str]], location: str = "AWS Region") -> str:
    """AWS's price list with so many rates: region, usage type and the price of each tier."""
    products: dict[str, Any] = {}
    terms: dict[str, Any] = {}
    for number, (region, usage, tiers) in enumerate(rates):
        attributes = {"regionCode": region, "usagetype": usage, "locationType": location}
        products[f"SKU{number}"] = {"sku": f"SKU{number}", "attributes": attributes}
        dimensions = {f"R{tier}": {"pricePerUnit": {"USD": price}} for tier, price in enumerate(tiers)}
        terms[f"SKU{number}"] = {f"SKU{number}.JRTCKXETXF": {"priceDimensions": dimensions}}
    return json.dumps({"offerCode": "AmazonDynamoDB", "products": products, "terms": {"OnDemand": terms}})


def _region(region: str, prefix: str, first: int) -> list[tuple[str, str, list[str]]]:
    names = [f"{prefix}{usage}" for usage in USAGES] + [f"{prefix}IA-{usage}" for usage in USAGES]
    return [(region, name, [f"0.00000{first + number}"]) for number, name in enumerate(names)]


def test_price_list_of_aws_becomes_a_price_file() -> None:
    rates = [*_region("us-east-1", "", 11), *_region("eu-west-1", "EU-", 31)]
    # the first 18,600 unit-hours of a month are free
    rates[0] = ("us-east-1", "WriteCapacityUnit-Hrs", ["0.0000000000", "0.00065"])
    rates += [
        ("us-east-1", "ReplWriteCapacityUnit-Hrs", ["9"]),
        ("us-east-1", "TimedStorage-ByteHrs", ["0.0", "0.25"]),
        ("us-east-1", "IA-TimedStorage-ByteHrs", ["0.1"]),
        ("us-east-1", "USE1-TimedBackupStorage-ByteHrs", ["8"]),
        ("mars-1", "MARS-WriteCapacityUnit-Hrs", ["7"]),
    ]
    made = price_file(_offers(*rates), "index.json", TODAY)
    assert (made["dated"], made["source"], list(made["regions"])) == (
        "2026-11",
        "index.json",
        ["eu-west-1", "us-east-1"],
    )
    assert made["regions"]["us-east-1"]["standard"] == {
        "write_unit_hour": 0.00065,
        "read_unit_hour": 0.0000012,
        "on_demand_write_million": 1.3,
        "on_demand_read_million": 1.4,
        "storage_gb_month": 0.25,
    }
    assert made["regions"]["us-east-1"]["infrequent_access"]["storage_gb_month"] == 0.1
    assert made["regions"]["eu-west-1"]["infrequent_access"] == {
        "write_unit_hour": 0.0000035,
        "read_unit_hour": 0.0000036,
        "on_demand_write_million": 3.7,
        "on_demand_read_million": 3.8,
    }


def test_data_and_reserved_capacity_are_of_the_region() -> None:
    rates = [
        *_region("us-east-2", "USE2-", 11),
        ("us-east-2", "USE2-TimedPITRStorage-ByteHrs", ["0.21"]),
        ("us-east-2", "USE2-TimedBackupStorage-ByteHrs", ["0.12"]),
        ("us-east-2", "USE2-Streams-Requests", ["0.0", "0.0000003"]),
        # another class's backups, if there are such
        ("us-east-2", "USE2-IA-TimedBackupStorage-ByteHrs", ["9"]),
        *_region("mars-1", "MARS-", 31),
        ("mars-1", "MARS-TimedPITRStorage-ByteHrs", ["0.5"]),
    ]
    made = price_file(_offers(*rates), "index.json", TODAY)["regions"]
    assert made["us-east-2"]["data"] == {"recovery_gb_month": 0.21, "backup_gb_month": 0.12, "stream_read_million": 0.3}
    # the lab's: no list that is read has them
    assert made["us-east-2"]["reserved"]["1"]["write_upfront"] == 150
    assert made["mars-1"].keys() == {"standard", "infrequent_access"}


def test_rates_as_csv_become_one_too() -> None:
    lines = ["Region,Instance Type,Savings Plan Rate,On-Demand Rate,Service Code,Usage Type"]
    for region, usage, (price,) in _region("eu-west-3", "EUW3-", 51):
        lines.append(f"{region},DynamoDB,0.9,{price},AmazonDynamoDB,{usage}")
        lines.append(f"{region},Keyspaces,0.9,0.5,AmazonMCS,{usage}")
    made = price_file("\n".join(lines), "rates.csv", TODAY)
    assert made["regions"]["eu-west-3"]["standard"]["on_demand_write_million"] == 5.3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "<html>",
            "list: is neither AWS's price list of DynamoDB nor a CSV file with the columns Region, Service Code, Usage "
            "Type, On-Demand Rate",
        ),
        (
            '{"products": 5}',
            "list: is neither AWS's price list of DynamoDB nor a CSV file with the columns Region, Service Code, Usage "
            "Type, On-Demand Rate",
        ),
        (_offers(*_region("us-east-1", "", 11)[:5]), "list: has no region with all prices of DynamoDB's throughput"),
        (
            _offers(*_region("us-east-1-bos-1", "BOS1-", 11), location="AWS Local Zone"),
            "list: has no region with all prices of DynamoDB's throughput",
        ),
    ],
)
def test_anything_else_is_told(text: str, says: str) -> None:
    with pytest.raises(PriceError) as refused:
        price_file(text, "list", TODAY)
    assert str(refused.value) == says
