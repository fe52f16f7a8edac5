"""Traffic files: what is read, and what is told of what is not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from highwater.core import Dimension
from highwater_lab.traffic import Stream, TrafficError, read_traffic, scenario, write_traffic

READ, WRITE = Dimension.READ, Dimension.WRITE
EXPECTED = "'minute_index', 'bin_<N>s' or 'timestamp' first, then 'units', or 'reads', 'writes', 'reads:INDEX', ..."


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "orders.csv"
    path.write_text(text)
    return path


def test_minutes_of_units_are_writes_unless_told_otherwise(tmp_path: Path) -> None:
    path = _file(tmp_path, "minute_index,units\n0,120\n1,7\n2,0\n")
    traffic = read_traffic(path)
    assert {s: list(rates) for s, rates in traffic.rates.items()} == {Stream(None, WRITE): [120, 7, 0]}
    assert (traffic.name, traffic.minutes, traffic.bin_seconds) == ("orders", 3, 60)
    assert traffic.start == datetime(2026, 11, 2, tzinfo=UTC)
    assert list(read_traffic(path, units_are=READ).rates) == [Stream(None, READ)]


def test_coarse_bins_are_spread_and_keep_their_totals(tmp_path: Path) -> None:
    traffic = read_traffic(_file(tmp_path, "bin_300s,units\n0,7\n1,104\n"))
    (rates,) = traffic.rates.values()
    assert len(rates) == 10
    assert (sum(rates[:5]), sum(rates)) == (7, 111)
    assert traffic.source_bin_seconds == 300
    assert not traffic.is_coarse
    assert read_traffic(_file(tmp_path, "bin_1800s,units\n0,7\n")).is_coarse


def test_fine_bins_become_seconds_and_lose_what_fills_no_minute(tmp_path: Path) -> None:
    rows = "".join(f"{number},{number}\n" for number in range(7))
    traffic = read_traffic(_file(tmp_path, "bin_20s,units\n" + rows))
    (rates,) = traffic.rates.values()
    assert (traffic.bin_seconds, traffic.minutes, len(rates)) == (1, 2, 120)
    assert [sum(rates[at : at + 20]) // 60 for at in range(0, 120, 20)] == [0, 1, 2, 3, 4, 5]


def test_columns_for_reads_writes_and_indexes(tmp_path: Path) -> None:
    text = "timestamp,reads,writes,reads:by_status,writes:by_status\n"
    text += "2026-11-03T05:00:00Z,1,2,3,4\n2026-11-03T06:01:00+01:00,5,6,7,8\n"
    traffic = read_traffic(_file(tmp_path, text))
    assert traffic.start == datetime(2026, 11, 3, 5, tzinfo=UTC)
    assert {stream.label: list(rates) for stream, rates in traffic.rates.items()} == {
        "reads": [1, 5],
        "writes": [2, 6],
        "reads:by_status": [3, 7],
        "writes:by_status": [4, 8],
    }


def test_what_is_written_reads_the_same(tmp_path: Path) -> None:
    for traffic in (scenario("step"), read_traffic(_file(tmp_path, "minute_index,reads,writes:a-b\n0,1,2\n1,3,4\n"))):
        path = tmp_path / f"{traffic.name}.csv"
        write_traffic(traffic, path)
        again = read_traffic(path)
        assert again.rates == traffic.rates
        assert (again.start, again.bin_seconds) == (traffic.start, traffic.bin_seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", f": is empty; expected a header of {EXPECTED}", id="empty"),
        pytest.param("minute_index,units\n", ": has a header and no rows; give one row per bin below it", id="no rows"),
        pytest.param("time,units\n0,1\n", f", line 1: first column is 'time'; expected {EXPECTED}", id="no time"),
        pytest.param("minute_index\n0\n", f", line 1: has no column of units; expected {EXPECTED}", id="no units"),
        pytest.param(
            "minute_index,write\n0,1\n", f", line 1: unknown column 'write'; expected {EXPECTED}", id="unknown column"
        ),
        pytest.param(
            "minute_index,units,writes\n0,1,2\n",
            ", line 1: has writes twice, in column 'writes' again; keep one",
            id="twice",
        ),
        pytest.param(
            "minute_index,units\n0,5\n1\n",
            ", line 3: has 1 column, the header has 2 columns; "
            "each row wants one value per column, with commas between",
            id="missing cell",
        ),
        pytest.param(
            "minute_index,reads,writes\n0,5,-1\n",
            ", line 2: writes are '-1'; allowed: a number of units from 0, per bin",
            id="negative",
        ),
        pytest.param(
            "minute_index,units\n0,nan\n",
            ", line 2: writes are 'nan'; allowed: a number of units from 0, per bin",
            id="NaN",
        ),
        pytest.param(
            "minute_index,units\n0,\n",
            ", line 2: writes are ''; allowed: a number of units from 0, per bin",
            id="nothing",
        ),
        pytest.param(
            "minute_index,units\n0,1\n2,1\n", ", line 3: bin is '2', expected 1: bins count from 0 on", id="gap"
        ),
        pytest.param(
            "timestamp,units\nyesterday,1\n",
            ", line 2: timestamp is 'yesterday'; write it as 2026-11-02T05:00:00Z",
            id="no timestamp",
        ),
        pytest.param(
            "timestamp,units\n2026-11-02T05:00,1\n2026-11-02T05:01,1\n2026-11-02T05:04,1\n",
            ", line 4: comes 180 s after the line before, the first two are 60 s apart; fill gaps with 0",
            id="gap in time",
        ),
    ],
)
def test_file_that_cannot_be_read_is_told_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(TrafficError) as refused:
        read_traffic(path)
    assert str(refused.value) == f"{path}{message}"


def test_other_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "none.csv"
    with pytest.raises(TrafficError) as refused:
        read_traffic(missing)
    assert str(refused.value) == (
        f"{missing}: cannot be read: No such file or directory; give a CSV file of units per bin"
    )
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TrafficError) as refused:
        read_traffic(binary)
    assert str(refused.value) == f"{binary}: cannot be read: is no text file; give a CSV file of units per bin"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("bin_7s", "orders: bins must divide a minute or be whole minutes, got 7 s"),
        ("bin_90s", "orders: bins must divide a minute or be whole minutes, got 90 s"),
        ("bin_1s", "orders: holds less than one whole minute of traffic"),
    ],
)
def test_bins_that_cannot_be(header: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TrafficError) as refused:
        read_traffic(_file(tmp_path, f"{header},units\n0,1\n"))
    assert str(refused.value) == message
