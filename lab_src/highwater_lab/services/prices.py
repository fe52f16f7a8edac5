"""Prices by region: from the lab's dated file, from a file of the user, or made from AWS's price list."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from decimal import Decimal
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from highwater.core import Dimension, HighwaterError
from highwater_lab.files import read_file

DEFAULT_REGION: Final = "us-east-1"
# An upper limit far above any of these prices; a higher one is an error in the file
_MOST = 1_000_000
# in a message
_MOST_REGIONS: Final = 6


class PriceError(HighwaterError, ValueError):
    """The price file cannot be read, or it has no prices for the region."""


class NoPricesError(PriceError):
    """The price file has no prices for the region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPrices:
    """Prices of throughput in USD, of one table class in one region.

    Replicated writes, which are billed for each replica of a global table, have cost the same as others since November
    2024 (FACTS.md, section 11).

    Attributes:
        write_unit_hour: The price of one provisioned write unit for an hour.
        read_unit_hour: The price of one provisioned read unit for an hour.
        on_demand_write_million: The price of a million write request units.
        on_demand_read_million: The price of a million read request units.
        storage_gb_month: The price of a gigabyte of data for a month; `None` if the file does not have it.
    """

    write_unit_hour: float
    read_unit_hour: float
    on_demand_write_million: float
    on_demand_read_million: float
    storage_gb_month: float | None = None

    def unit_hour(self, dimension: Dimension) -> float:
        """Return the price of one provisioned unit for an hour."""
        return self.read_unit_hour if dimension is Dimension.READ else self.write_unit_hour

    def on_demand_million(self, dimension: Dimension) -> float:
        """Return the price of a million request units."""
        return self.on_demand_read_million if dimension is Dimension.READ else self.on_demand_write_million


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPrices:
    """Prices in USD of what is kept of a table beside its storage, and of reading its stream, in both table classes.

    Attributes:
        recovery_gb_month: Point-in-time recovery of a gigabyte of the table and its local indexes for a month.
        backup_gb_month: A gigabyte of an on-demand backup for a month.
        stream_read_million: A million read requests to a stream. Those of Lambda functions and of global tables are
            free.
    """

    recovery_gb_month: float
    backup_gb_month: float
    stream_read_million: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedPrices:
    """Prices in USD of 100 reserved units for a term: what is paid at its begin, and in each of its hours.

    Attributes:
        write_upfront: What 100 write units cost once.
        write_hour: What they cost an hour, used or not.
        read_upfront: What 100 read units cost once.
        read_hour: What they cost an hour, used or not.
    """

    write_upfront: float
    write_hour: float
    read_upfront: float
    read_hour: float

    def upfront(self, dimension: Dimension) -> Decimal:
        """Return what 100 units of a dimension cost once."""
        return exact(self.read_upfront if dimension is Dimension.READ else self.write_upfront)

    def hour(self, dimension: Dimension) -> Decimal:
        """Return what 100 units of a dimension cost an hour beside that."""
        return exact(self.read_hour if dimension is Dimension.READ else self.write_hour)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPrices:
    """Prices of one region: of throughput by table class, and of what else is billed for a table.

    Attributes:
        standard: The prices of DynamoDB Standard.
        infrequent_access: The prices of DynamoDB Standard-IA.
        data: The prices of backups and streams; `None` if the file does not have them.
        reserved: The prices of reserved capacity by the years of the term; without the terms that the file lacks.
    """

    standard: UnitPrices
    infrequent_access: UnitPrices
    data: DataPrices | None = None
    reserved: Mapping[int, ReservedPrices] = field(default_factory=dict)


def exact(price: float) -> Decimal:
    """Return a price as it is written in the file."""
    return Decimal(str(price))


# What is left of list prices with a Database Savings Plan, one year without upfront payment, since December 2025
# (princeboot/aws-dbsavingsplan-data cf13746, read 2026-11)
PLAN_PROVISIONED: Final = Decimal("0.88")
PLAN_ON_DEMAND: Final = Decimal("0.82")
# The terms of reserved capacity (Amazon DynamoDB Developer Guide, "DynamoDB reserved capacity", read 2026-11)
RESERVED_YEARS: Final = (1, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitments:
    """What was bought before: capacity below it is paid for, whether it is used or not, and so costs nothing more.

    Attributes:
        reserved_read_units: Reserved read units in the region, 0 or more. They cover provisioned capacity of class
            Standard, without replicated writes (Amazon DynamoDB pricing, "Reserved capacity").
        reserved_write_units: Likewise for writes.
        has_savings_plan: Whether a Database Savings Plan covers the rest, also of class Standard-IA.
    """

    reserved_read_units: int = 0
    reserved_write_units: int = 0
    has_savings_plan: bool = False

    def reserved_units(self, dimension: Dimension) -> int:
        """Return the reserved units of one dimension."""
        return self.reserved_read_units if dimension is Dimension.READ else self.reserved_write_units

    @property
    def provisioned_factor(self) -> float:
        """The factor on prices of provisioned capacity that is not reserved."""
        return float(PLAN_PROVISIONED) if self.has_savings_plan else 1.0

    @property
    def on_demand_factor(self) -> float:
        """The factor on prices of request units."""
        return float(PLAN_ON_DEMAND) if self.has_savings_plan else 1.0

    @property
    def name(self) -> str:
        """The commitments for reports; empty for none."""
        reserved = [
            f"{units:,} {kind} units reserved"
            for kind, units in (("read", self.reserved_read_units), ("write", self.reserved_write_units))
            if units
        ]
        return ", ".join([*reserved, *(["savings plan"] if self.has_savings_plan else [])])


NO_COMMITMENTS: Final = Commitments()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in USD of one region, and of the other regions for replicas.

    Attributes:
        region: The region whose prices are used.
        dated: The date on which the prices were read.
        alarm_month: The price of one standard-resolution alarm for a month; this and the next six are the same in
            nearly all regions.
        thousand_metrics_requested: The price of a thousand metrics requested with GetMetricData.
        custom_metric_month: The price of a custom metric of CloudWatch for a month.
        config_item: The price of a configuration item that AWS Config records.
        lambda_gb_second: The price of a gigabyte of a Lambda function's memory for a second, on Arm.
        lambda_request: The price of an invocation of a Lambda function.
        schedule_run: The price of a run of an EventBridge schedule.
        regions: The prices of throughput by region.
        source: The name of the prices' file, for messages.
        commitments: What was bought before. By default nothing.
        has_config_recorder: Whether AWS Config records each change of tables and alarms. By default it does not.
    """

    region: str
    dated: str
    alarm_month: float
    thousand_metrics_requested: float
    custom_metric_month: float
    config_item: float
    lambda_gb_second: float
    lambda_request: float
    schedule_run: float
    regions: Mapping[str, RegionPrices]
    source: str = "prices.json"
    commitments: Commitments = NO_COMMITMENTS
    has_config_recorder: bool = False

    def in_region(self, region: str) -> Prices:
        """Return the prices for another region; raises `NoPricesError` for a region without prices."""
        if region not in self.regions:
            every = sorted(self.regions)
            more = len(every) - _MOST_REGIONS
            known = (", ".join(every[:_MOST_REGIONS]) or "none") + (f" and {more} more" if more > 0 else "")
            raise NoPricesError(
                f"{self.source}: has no prices of region {region!r}, only of {known}; make a file that has them with "
                "highwater prices --fetch, and give it with --prices"
            )
        return replace(self, region=region)

    def throughput(self, *, is_infrequent_access: bool = False) -> UnitPrices:
        """Return the prices of throughput of one table class, in this region."""
        prices = self.regions[self.region]
        return prices.infrequent_access if is_infrequent_access else prices.standard

    @property
    def name(self) -> str:
        """Region and date, and what changes the prices, for reports."""
        more = [self.commitments.name, "with AWS Config" if self.has_config_recorder else ""]
        return ", ".join([f"prices of {self.region}, {self.dated}", *filter(None, more)])

    def committed(self, commitments: Commitments, *, has_config_recorder: bool = False) -> Prices:
        """Return the same prices with what was bought before, and with or without what AWS Config records."""
        return replace(self, commitments=commitments, has_config_recorder=has_config_recorder)


def load_prices(region: str = DEFAULT_REGION, file: Path | None = None) -> Prices:
    """Load prices for *region* from *file*, by default from the file that is part of the lab.

    A file has the same members as the lab's `prices.json`, whose prices that are the same in all regions are taken
    where the file lacks them; `highwater prices --fetch` makes one. Raises `PriceError` if a member is missing or
    invalid, or if the file has no prices of the region.
    """
    name = str(file) if file else "prices.json"
    document = _load_shipped() if file is None else _load(file)
    flat: dict[str, Any] = {key: _price(name, key, document.get(key, usd)) for key, usd in _flat().items()}
    regions = document.get("regions")
    if not isinstance(regions, dict):
        raise PriceError(f"{name}: regions is {str(regions)[:60]}; expected the prices of throughput by region")
    read = {str(key): _region(name, str(key), value) for key, value in regions.items()}
    dated = str(document.get("dated", "undated"))
    return Prices(region=region, dated=dated, regions=read, source=name, **flat).in_region(region)


# the lab's file has it for some regions only
_OPTIONAL: Final = frozenset({"storage_gb_month"})


def _region(name: str, region: str, document: Any) -> RegionPrices:
    document = document if isinstance(document, dict) else {}

    def read(kind: type, member: str, value: object) -> Any:
        members = value if isinstance(value, dict) else {}
        return kind(
            **{
                price.name: _price(name, f"{region} {member} {price.name}", members.get(price.name))
                for price in fields(kind)
                if price.name in members or price.name not in _OPTIONAL
            }
        )

    reserved = document.get("reserved")
    terms = reserved if isinstance(reserved, dict) else {}
    return RegionPrices(
        standard=read(UnitPrices, "standard", document.get("standard")),
        infrequent_access=read(UnitPrices, "infrequent_access", document.get("infrequent_access")),
        data=read(DataPrices, "data", document["data"]) if "data" in document else None,
        reserved={
            years: read(ReservedPrices, f"reserved {years}", terms[str(years)])
            for years in RESERVED_YEARS
            if str(years) in terms
        },
    )


def _price(name: str, label: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _MOST:
        raise PriceError(f"{name}: {label} is {str(value)[:60]}; expected a price in USD, from 0 to 1,000,000")
    return value


def _flat() -> dict[str, float]:
    """Return the lab's prices that are the same in nearly all regions."""
    return {key: usd for key, usd in _load_shipped().items() if isinstance(usd, float)}


@cache
def _load_shipped() -> dict[str, Any]:
    text = resources.files("highwater.core").joinpath("prices.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def _load(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_file(file))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not valid JSON"
        raise PriceError(f"{file}: cannot be read: {reason}") from error
    if not isinstance(document, dict):
        raise PriceError(f"{file}: is not a JSON object; give the members of the lab's prices.json")
    return document


# public: no credentials are needed
PRICE_LIST_URL: Final = "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonDynamoDB/current/index.json"
_SERVICE: Final = "AmazonDynamoDB"
# USE2-WriteCapacityUnit-Hrs; us-east-1 has no prefix, IA is the table class Standard-IA
_USAGE: Final = re.compile(
    r"(?:[A-Z]+\d*-)??(IA-)?(Read|Write|)"
    r"(CapacityUnit-Hrs|RequestUnits|Timed(?:PITR|Backup|)Storage-ByteHrs|Streams-Requests)"
)
_COLUMNS: Final = ("Region", "Service Code", "Usage Type", "On-Demand Rate")
_MEMBERS: Final = {
    ("Write", "CapacityUnit-Hrs"): "write_unit_hour",
    ("Read", "CapacityUnit-Hrs"): "read_unit_hour",
    ("Write", "RequestUnits"): "on_demand_write_million",
    ("Read", "RequestUnits"): "on_demand_read_million",
    ("", "TimedStorage-ByteHrs"): "storage_gb_month",
}
# of a region, whatever the class of the table
_DATA_MEMBERS: Final = {
    "TimedPITRStorage-ByteHrs": "recovery_gb_month",
    "TimedBackupStorage-ByteHrs": "backup_gb_month",
    "Streams-Requests": "stream_read_million",
}


def price_file(text: str, where: str, today: date) -> dict[str, Any]:
    """Return the members of a price file, from the text of AWS's price list or of a CSV of rates.

    Regions that lack one of the prices are left out. The prices of reserved capacity are the lab's. Raises
    `PriceError`, naming *where*, if there is none.
    """
    try:
        rates = list(_rates_of_json(json.loads(text)) if text.lstrip().startswith("{") else _rates_of_csv(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error) as error:
        raise PriceError(
            f"{where}: is neither AWS's price list of DynamoDB nor a CSV file with the columns {', '.join(_COLUMNS)}"
        ) from error
    regions: dict[str, dict[str, Any]] = {}
    for region, usage, rate in rates:
        match = _USAGE.fullmatch(usage)
        if match is None:
            continue
        group, member = "infrequent_access" if match[1] else "standard", _MEMBERS.get((match[2], match[3]))
        if not match[1] and not match[2] and match[3] in _DATA_MEMBERS:
            group, member = "data", _DATA_MEMBERS[match[3]]
        if member is None:
            continue
        price = rate * 1e6 if member.endswith("million") else rate
        members = regions.setdefault(region, {}).setdefault(group, {})
        # the first units of a month may be a separate tier, which is free
        members[member] = round(max(price, members.get(member, 0.0)), 12)
    needed = set(_MEMBERS.values()) - _OPTIONAL
    whole = {}
    for region, groups in sorted(regions.items()):
        if not all(needed <= groups.get(each, {}).keys() for each in ("standard", "infrequent_access")):
            continue
        whole[region] = {each: groups[each] for each in ("standard", "infrequent_access")}
        if groups.get("data", {}).keys() == set(_DATA_MEMBERS.values()):
            whole[region]["data"] = groups["data"]
        # in another form in AWS's list, and in none in a CSV of rates
        reserved = _load_shipped()["regions"].get(region, {}).get("reserved")
        if reserved is not None:
            whole[region]["reserved"] = reserved
    if not whole:
        raise PriceError(f"{where}: has no region with all prices of DynamoDB's throughput")
    return {"dated": f"{today:%Y-%m}", "source": where, **_flat(), "regions": whole}


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
