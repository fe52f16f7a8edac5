"""What the data of tables costs, by hand."""

from __future__ import annotations

import pytest

from highwater_lab.services.data_costs import DataCosts, TableData, data_costs
from highwater_lab.services.prices import load_prices


def test_costs_are_sizes_times_prices_of_class_and_region() -> None:
    tables = [
        TableData(region="us-east-1", storage_gb=130, recovery_gb=110, backup_gb=37, has_stream=True),
        TableData(region="us-west-2", storage_gb=900, is_infrequent_access=True, has_stream=True),
        TableData(region="us-east-1", storage_gb=3, backup_gb=5),
    ]
    found = data_costs(tables, load_prices)
    assert (found.tables, found.storage_gb, found.recovery_gb, found.backup_gb) == (3, 1_033, 110, 42)
    # 133 GB of Standard, 900 GB of Standard-IA
    assert found.storage_usd == pytest.approx(133 * 0.25 + 900 * 0.10)
    assert (found.recovery_usd, found.backup_usd) == pytest.approx((110 * 0.20, 42 * 0.10))
    assert found.usd_month == pytest.approx(33.25 + 90 + 22 + 4.2)
    assert (found.streams, found.stream_read_million, found.unpriced) == (2, 0.2, ())


def test_region_without_such_prices_is_named_and_left_out() -> None:
    tables = [TableData(region="eu-west-1", storage_gb=70), TableData(region="us-east-1", storage_gb=8)]
    found = data_costs(tables, load_prices)
    assert (found.tables, found.storage_usd, found.unpriced) == (1, 2.0, ("eu-west-1",))
    assert data_costs([], load_prices) == DataCosts()
