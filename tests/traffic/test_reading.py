"""Which table of a file or a folder is read, and what is said where none can be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from highwater.core import Dimension
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.traffic import Stream, TrafficError, read_traffic, read_traffic_by_table

MANY = "table,minute_index,reads\norders,0,5\ncarts,0,7\nShop_Visits,0,9\n"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    path = tmp_path / "many.csv"
    path.write_text(MANY)
    return path


@pytest.mark.parametrize(
    ("table", "likely", "name"),
    [
        ("carts", None, "carts"),
        ("carts", "orders", "carts"),
        (None, "orders", "orders"),
        (None, "Shop/Orders", "orders"),
        (None, "shop_visits", "Shop_Visits"),
    ],
)
def test_table_is_chosen_by_its_name(many: Path, table: str | None, likely: str | None, name: str) -> None:
    assert read_traffic(many, table=table, likely_table=likely).name == name


def test_only_table_of_a_file_is_read_whatever_is_likely(tmp_path: Path) -> None:
    path = tmp_path / "traffic.csv"
    path.write_text("minute_index,reads\n0,5\n")
    assert read_traffic(path, likely_table="orders").name == "traffic"
    with pytest.raises(TrafficError) as refused:
        read_traffic(path, table="orders")
    assert str(refused.value) == f"{path}: has no traffic of table 'orders'; it has traffic"


@pytest.mark.parametrize("hours", [[7], [1, 7, 13]])
def test_tables_of_a_file_have_bins_of_one_length(tmp_path: Path, hours: list[int]) -> None:
    rows = [f"2026-11-02T{hour:02}:00:00Z,orders,3600" for hour in range(24)]
    rows += [f"2026-11-02T{hour:02}:00:00Z,reports,36000" for hour in hours]
    path = tmp_path / "hourly.csv"
    path.write_text("\n".join(["timestamp,table,writes", *rows]))
    found = read_traffic(path, table="reports")
    assert (found.source_bin_seconds, found.minutes) == (3_600, (hours[-1] - hours[0] + 1) * 60)
    assert max(found.rates[Stream(None, Dimension.WRITE)]) == 10 * QUANTA_PER_UNIT


def test_several_tables_without_a_name_are_listed(many: Path) -> None:
    for likely in (None, "Shop/Customers"):
        with pytest.raises(TrafficError) as refused:
            read_traffic(many, likely_table=likely)
        assert str(refused.value) == (
            f"{many}: has traffic of 3 tables, Shop_Visits, carts, orders; choose one with --traffic-table NAME"
        )
    with pytest.raises(TrafficError) as refused:
        read_traffic(many, table="cart")
    assert str(refused.value) == (
        f"{many}: has no traffic of table 'cart'; it has Shop_Visits, carts, orders; did you mean carts?"
    )


def test_table_in_two_files_of_a_folder_is_refused(many: Path) -> None:
    (many.parent / "orders.csv").write_text("minute_index,reads\n0,5\n")
    with pytest.raises(TrafficError) as refused:
        read_traffic_by_table(many.parent)
    assert str(refused.value) == f"{many.parent}/orders.csv: has table 'orders', which {many} has too; keep one of them"


def test_folder_without_traffic_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("none")
    with pytest.raises(TrafficError) as refused:
        read_traffic_by_table(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}: has no file of traffic; give a folder with a .csv, .json or .parquet file per table"
    )


def test_table_that_only_some_metrics_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("Label,orders ConsumedReadCapacityUnits,ConsumedWriteCapacityUnits\n2026/11/02 10:00:00,5,6\n")
    with pytest.raises(TrafficError) as refused:
        read_traffic(path)
    assert str(refused.value) == (
        f"{path}: some of its metrics name table 'orders' and some no table; name the table in all"
    )


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "orders.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(TrafficError) as refused:
        read_traffic(path)
    assert str(refused.value) == (f"{path}: is Parquet, which needs pyarrow; install it with: pip install pyarrow")


def test_parquet_that_is_broken_is_told(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "orders.parquet"
    path.write_bytes(b"PAR1 and no more PAR1")
    with pytest.raises(TrafficError) as refused:
        read_traffic(path)
    assert str(refused.value).startswith(f"{path}: cannot be read as Parquet: ")
    assert str(refused.value).endswith("; write the file again")
    assert "\n" not in str(refused.value)
