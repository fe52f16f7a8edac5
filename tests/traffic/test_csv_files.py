"""Traffic files: how they are read, and the messages for those that cannot be read."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from highwater.core import Dimension
from highwater_lab.traffic import Stream, TrafficError, read_traffic, scenario, write_traffic

READ, WRITE = Dimension.READ, Dimension.WRITE
EXPECTED = (
    "a first column 'minute_index', 'bin_<N>s' or 'timestamp', then 'units', or 'reads', 'writes', 'reads:INDEX', ..."
)


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "orders.csv"
    path.write_text(text)
    return path


def test_units_by_minute_are_writes_by_default(tmp_path: Path) -> None:
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


def test_fine_bins_become_seconds_and_lose_an_incomplete_last_minute(tmp_path: Path) -> None:
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


def test_written_traffic_reads_the_same(tmp_path: Path) -> None:
    for traffic in (scenario("step"), read_traffic(_file(tmp_path, "minute_index,reads,writes:a-b\n0,1,2\n1,3,4\n"))):
        path = tmp_path / f"{traffic.name}.csv"
        write_traffic(traffic, path)
        again = read_traffic(path)
        assert again.rates == traffic.rates
        assert (again.start, again.bin_seconds) == (traffic.start, traffic.bin_seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", f": is empty; expected a header with {EXPECTED}", id="empty"),
        pytest.param("minute_index,units\n", ": has a header but no rows; add one row per bin", id="no rows"),
        pytest.param("time,units\n0,1\n", f", line 1: first column is 'time'; expected {EXPECTED}", id="no time"),
        pytest.param("minute_index\n0\n", f", line 1: has no column of units; expected {EXPECTED}", id="no units"),
        pytest.param(
            "minute_index,write\n0,1\n", f", line 1: unknown column 'write'; expected {EXPECTED}", id="unknown column"
        ),
        pytest.param(
            "minute_index,units,writes\n0,1,2\n",
            ", line 1: column 'writes' gives writes a second time; remove one of the columns",
            id="twice",
        ),
        pytest.param(
            "minute_index,units\n0,5\n1\n",
            ", line 3: has 1 column, but the header has 2 columns; give one value per column, separated by commas",
            id="missing cell",
        ),
        pytest.param(
            "minute_index,reads,writes\n0,5,-1\n",
            ", line 2: writes are '-1'; give the units requested in the bin, 0 or more",
            id="negative",
        ),
        pytest.param(
            "minute_index,units\n0,nan\n",
            ", line 2: writes are 'nan'; give the units requested in the bin, 0 or more",
            id="NaN",
        ),
        pytest.param(
            "minute_index,units\n0,\n",
            ", line 2: writes are ''; give the units requested in the bin, 0 or more",
            id="nothing",
        ),
        pytest.param(
            "minute_index,units\n2,1\n1,1\n",
            ", line 3: bin number is '1', expected 0; number the bins from 0",
            id="numbered from 1",
        ),
        pytest.param(
            "minute_index,units\n-1,1\n",
            ", line 2: bin number is '-1'; number the bins from 0",
            id="number below 0",
        ),
        pytest.param(
            "timestamp,units\nyesterday,1\n",
            ", line 2: timestamp is 'yesterday'; write it as 2026-11-02T05:00:00Z, or as the seconds or milliseconds "
            "since 1970",
            id="no timestamp",
        ),
        pytest.param(
            "timestamp,units\n2026-11-02T05:00,1\n2026-11-02T05:01,1\n2026-11-02T05:03:30,1\n",
            ", line 4: the time is 150 s after that of line 3, but bins are 60 s long; give bins of one length",
            id="between two bins",
        ),
        pytest.param(
            "timestamp,units\n"
            + "".join(f"2026-11-02T05:0{minute}:{'08' if minute == 7 else '00'},1\n" for minute in range(9)),
            ", line 9: the time is 68 s after that of line 8, but bins are 60 s long; give bins of one length",
            id="one wrong time",
        ),
        pytest.param(
            "timestamp,units\n2026-11-02T05:01,1\n2026-11-02T05:00,1\n2026-11-02T06:01+01:00,2\n",
            ", line 4: writes are 2, but line 2 has the same time and 1; give each bin once, and times with their "
            "offset from UTC",
            id="the same time with other units",
        ),
        pytest.param(
            "timestamp;units\n2026-11-02T05:00;1.500\n2026-11-02T05:01;1,5\n",
            ", line 3: writes are '1,5', but line 2 has a decimal '.'; write all numbers in one way, without "
            "separators of thousands",
            id="points and decimal commas",
        ),
        pytest.param(
            "timestamp;units\n2026-11-02T05:00;1.500,5\n",
            ", line 2: writes are '1.500,5'; give the units requested in the bin, 0 or more",
            id="separated thousands",
        ),
        pytest.param(
            "timestamp;units\n2026-11-02T05:00;1;2\n",
            ", line 2: has 3 columns, but the header has 2 columns; give one value per column, separated by semicolons",
            id="one column more",
        ),
        pytest.param(
            "timestamp,table,units\n2026-11-02T05:00,my table,1\n",
            ", line 2: table is 'my table'; give a table's name: 3 to 255 letters, digits, '_', '.' or '-'",
            id="no table",
        ),
    ],
)
def test_file_that_cannot_be_read_is_reported_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(TrafficError) as refused:
        read_traffic(path)
    assert str(refused.value) == f"{path}{message}"


def test_other_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "none.csv"
    with pytest.raises(TrafficError) as refused:
        read_traffic(missing)
    assert str(refused.value) == (
        f"{missing}: cannot be read: No such file or directory; give a CSV, JSON or Parquet file"
    )
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TrafficError) as refused:
        read_traffic(binary)
    assert str(refused.value) == (
        f"{binary}: cannot be read: it is neither UTF-8 nor UTF-16 text; give a CSV, JSON or Parquet file"
    )
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(b"minute_index,units\n0,1\n")[:-9])
    with pytest.raises(TrafficError) as refused:
        read_traffic(packed)
    assert str(refused.value) == f"{packed}: cannot be read: its gzip is broken; pack or copy it again"


def test_gaps_are_unknown_and_kept_when_written(tmp_path: Path) -> None:
    text = "timestamp,units\n2026-11-02T05:00,6.5\n2026-11-02T05:01,1\n2026-11-02T05:04,3\n"
    path = _file(tmp_path, text)
    traffic = read_traffic(path)
    assert [list(rates) for rates in traffic.rates.values()] == [[7, 1, 1, 3, 3]]
    assert traffic.gaps == traffic.scaled(2).gaps == ((2, 2),)
    note = f"{path}: no rows for 2 of 5 bins, the first at 2026-11-02T05:02:00Z: they are unknown, and simulated as "
    note += "between their neighbours"
    assert traffic.notes == traffic.scaled(2).notes == (note,)
    write_traffic(traffic, path)
    assert read_traffic(path) == traffic
    assert path.read_text().count("\n") == 4
    traffic = read_traffic(_file(tmp_path, "minute_index,units\n3,1\n0,1\n1,2\n"))
    assert traffic.gaps == ((2, 1),)
    assert traffic.notes[0].endswith(
        ": no rows for 1 of 4 bins, the first at bin 2: they are unknown, and simulated as between their neighbours"
    )


@pytest.mark.parametrize(
    ("missing", "note"),
    [
        ([700], ""),
        ([700, 701, 900, 1203, 1204], ""),
        (
            [2],
            "1 of 2,880 bins, the first at bin 2, 1 of them in the busiest hour: they are unknown, and "
            "simulated as between their neighbours",
        ),
        (
            list(range(500, 620, 4)),
            "30 of 2,880 bins, the first at bin 500: they are unknown, and simulated as between their neighbours",
        ),
        (
            list(range(1000, 1006)),
            "6 of 2,880 bins, the first at bin 1000: they are unknown, and simulated as between their neighbours, as 0 "
            "units where more than 5 are missing in a row",
        ),
    ],
)
def test_missing_minutes_are_said_if_they_are_many_or_of_the_busiest_hour(
    tmp_path: Path, missing: list[int], note: str
) -> None:
    rows = (f"{number},{7 if number < 60 else 3}\n" for number in range(2880) if number not in missing)
    path = _file(tmp_path, "minute_index,units\n" + "".join(rows))
    traffic = read_traffic(path)
    assert traffic.notes == ((f"{path}: no rows for {note}",) if note else ())
    is_long = len(missing) == 6
    units = traffic.rates[Stream(None, Dimension.WRITE)]
    assert [units[number] for number in missing] == [0 if is_long else 7 if number < 60 else 3 for number in missing]


def test_what_is_repeated_counts_once_and_what_is_ignored_is_named(tmp_path: Path) -> None:
    text = "Host,TIME STAMP,Reads, wirtes ,write\n"
    text += "a,2026-11-02T05:01,2,3,4\na,2026-11-02T05:00,1,3,4\nb,2026-11-02T06:00+01:00,1,3,4\n"
    path = _file(tmp_path, text)
    traffic = read_traffic(path)
    assert {stream.label: list(rates) for stream, rates in traffic.rates.items()} == {"reads": [1, 2]}
    assert traffic.notes == (
        f"{path}: ignored columns: 'Host', 'wirtes', 'write'; did you mean writes?",
        f"{path}: 1 row repeats the time and the units of another: each time is counted once",
    )


def test_first_line_of_excel_names_the_separator(tmp_path: Path) -> None:
    traffic = read_traffic(_file(tmp_path, "sep=;\nminute_index;writes:a,b;units\n0;7;1,5\n"))
    assert [stream.label for stream in traffic.rates] == ["writes"]
    assert traffic.counts is not None
    assert list(traffic.counts[Stream(None, WRITE)]) == [1.5]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("bin_7s", "orders: a bin is 7 s long; its length must be a divisor or a multiple of 60 s"),
        ("bin_90s", "orders: a bin is 90 s long; its length must be a divisor or a multiple of 60 s"),
        ("bin_1s", "orders: is shorter than a minute; give at least one minute of traffic"),
    ],
)
def test_invalid_bins_are_refused(header: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TrafficError) as refused:
        read_traffic(_file(tmp_path, f"{header},units\n0,1\n"))
    assert str(refused.value) == message
