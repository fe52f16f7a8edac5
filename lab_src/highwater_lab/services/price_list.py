"""Makes a price file from AWS's price list: what `highwater prices --fetch` writes.

Sources: AWS Billing, "Reading the service price list file" (JSON), and Savings Plans rates exported as CSV.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import date
from typing import Any, Final

from highwater_lab.services.prices import PriceError

# public: no credentials are needed
PRICE_LIST_URL: Final = "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonDynamoDB/current/index.json"
_SERVICE: Final = "AmazonDynamoDB"
# USE2-WriteCapacityUnit-Hrs; us-east-1 has no prefix, IA is the table class Standard-IA
_USAGE: Final = re.compile(r"(?:[A-Z]+\d*-)??(IA-)?(Read|Write)(CapacityUnit-Hrs|RequestUnits)")
_COLUMNS: Final = ("Region", "Service Code", "Usage Type", "On-Demand Rate")
_MEMBERS: Final = {
    ("Write", "CapacityUnit-Hrs"): "write_unit_hour",
    ("Read", "CapacityUnit-Hrs"): "read_unit_hour",
    ("Write", "RequestUnits"): "on_demand_write_million",
    ("Read", "RequestUnits"): "on_demand_read_million",
}
# CloudWatch's prices, which are the same in nearly all regions (FACTS.md, section 5)
_FLAT: Final = {"alarm_month": 0.10, "thousand_metrics_requested": 0.01}


def price_file(text: str, where: str, today: date) -> dict[str, Any]:
    """Return the members of a price file, from the text of AWS's price list or of a CSV of rates.

    Regions that lack one of the prices are left out. Raises `PriceError`, naming *where*, if there is none.
    """
    try:
        rates = list(_rates_of_json(json.loads(text)) if text.lstrip().startswith("{") else _rates_of_csv(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error) as error:
        raise PriceError(
            f"{where}: is neither AWS's price list of DynamoDB nor a CSV file with the columns {', '.join(_COLUMNS)}"
        ) from error
    regions: dict[str, dict[str, dict[str, float]]] = {}
    for region, usage, rate in rates:
        match = _USAGE.fullmatch(usage)
        if match is None:
            continue
        table_class = "infrequent_access" if match[1] else "standard"
        member = _MEMBERS[match[2], match[3]]
        price = rate * 1e6 if member.endswith("million") else rate
        classes = regions.setdefault(region, {"standard": {}, "infrequent_access": {}})
        # the first units of a month may be free, as a tier of its own
        classes[table_class][member] = round(max(price, classes[table_class].get(member, 0.0)), 12)
    whole = {
        region: regions[region]
        for region in sorted(regions)
        if all(len(members) == len(_MEMBERS) for members in regions[region].values())
    }
    if not whole:
        raise PriceError(f"{where}: has no region with all prices of DynamoDB's throughput")
    return {"dated": f"{today:%Y-%m}", "source": where, **_FLAT, "regions": whole}


def _rates_of_json(document: Any) -> Iterator[tuple[str, str, float]]:
    """Yield region, usage type and price of each tier."""
    terms = document["terms"]["OnDemand"]
    for sku, product in document["products"].items():
        attributes = product["attributes"]
        if attributes.get("locationType") != "AWS Region":
            continue
        for offer in terms.get(sku, {}).values():
            for tier in offer["priceDimensions"].values():
                yield attributes["regionCode"], attributes["usagetype"], float(tier["pricePerUnit"]["USD"])


def _rates_of_csv(text: str) -> Iterator[tuple[str, str, float]]:
    rows = csv.DictReader(io.StringIO(text))
    if not set(_COLUMNS) <= set(rows.fieldnames or ()):
        raise KeyError(*_COLUMNS)
    for row in rows:
        region, service, usage, rate = (row[column] for column in _COLUMNS)
        if service == _SERVICE:
            yield region, usage, float(rate)
