"""CloudWatch's own files: what their labels mean, what is refused with a reason, and what the notes say."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.traffic import TrafficError, read_traffic, read_traffic_by_table

FULL = "us-east-1:AWS/DynamoDB TableName:orders"
ONLY_SUMS = "only sums tell the units of a period, so ask CloudWatch for the statistic Sum"


def _file(tmp_path: Path, text: str, name: str = "graph.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def _data(*results: dict[str, Any], **more: Any) -> str:
    return json.dumps({"MetricDataResults": list(results), **more})


def _result(label: str, *points: tuple[str, float], name: str = "m1") -> dict[str, Any]:
    times = [f"2026-11-02T{time}:00+00:00" for time, _ in points]
    return {"Id": name, "Label": label, "Timestamps": times, "Values": [value for _, value in points]}


def _rates(path: Path) -> dict[str, dict[str, list[int]]]:
    return {
        name: {stream.label: list(rates) for stream, rates in traffic.rates.items()}
        for name, traffic in read_traffic_by_table(path).items()
    }


def test_sums_of_a_period_become_units_per_second_and_throttles_count(tmp_path: Path) -> None:
    text = (
        "Id,m1,m2,m3\nStatusCode,Complete,Complete,Complete\nMessages,,,\n"
        f"Full label,{FULL} ConsumedWriteCapacityUnits Sum 300,{FULL} WriteThrottleEvents Sum 300,"
        f"{FULL} ProvisionedWriteCapacityUnits Average 300\n"
        "Label,ConsumedWriteCapacityUnits,WriteThrottleEvents,ProvisionedWriteCapacityUnits\n"
        "2026/11/02 10:00:00,3000,,5\n2026/11/02 10:05:00,,,5\n2026/11/02 10:15:00,600,900,5\n"
    )
    path = _file(tmp_path, text, "orders-2026_11_02_00_00_00-2026_11_03_00_00_00-UTC-3.csv")
    assert _rates(path) == {"orders": {"writes": [600] * 5 + [500] * 5 + [400] * 5 + [300] * 5}}
    traffic = read_traffic(path)
    assert (traffic.start, traffic.source_bin_seconds) == (datetime(2026, 11, 2, 13, tzinfo=UTC), 300)
    assert traffic.busiest_minute(next(iter(traffic.rates))) == 10
    # CloudWatch publishes zeros: a period that it has nothing of is not known
    assert traffic.gaps == ((1, 2),)
    assert traffic.notes == (
        f"{path}: no rows for 2 of 4 bins of table orders, the first at 2026-11-02T13:05:00Z: they are unknown, and "
        "simulated as between their neighbours",
    )


def test_minute_that_has_a_datapoint_of_reads_alone_is_not_known_for_writes(tmp_path: Path) -> None:
    reads = _result("orders ConsumedReadCapacityUnits Sum 60", ("10:00", 6), ("10:01", 18), ("10:02", 30), ("10:03", 6))
    writes = _result("orders ConsumedWriteCapacityUnits Sum 60", ("10:01", 60), ("10:03", 120), name="m2")
    path = _file(tmp_path, _data(reads, writes))
    # before the first datapoint there was nothing to count
    assert _rates(path) == {"orders": {"reads": [6, 18, 30, 6], "writes": [0, 60, 90, 120]}}
    traffic = read_traffic(path)
    assert traffic.gaps == ()
    assert traffic.notes == (
        f"{path}: no datapoints for 1 of 4 bins of table orders, the first at 2026-11-02T10:02:00Z: they are unknown, "
        "and simulated as between their neighbours",
    )


def test_table_without_consumption_is_idle_where_it_has_capacity_and_otherwise_unknown(tmp_path: Path) -> None:
    nothing = _result("ConsumedReadCapacityUnits"), _result("ConsumedWriteCapacityUnits", name="m2")
    gauge = _result("ProvisionedReadCapacityUnits", ("10:00", 200), ("10:05", 200), name="m3")
    path = tmp_path / "idle.json"
    path.write_text(_data(*nothing, gauge))
    idle = read_traffic(path)
    assert (idle.name, idle.minutes, idle.is_idle, idle.is_unknown) == ("idle", 6, True, False)
    assert idle.notes == (f"{path}: has datapoints of provisioned capacity and none of consumption: the table is idle",)
    path.write_text(_data(*nothing))
    (tmp_path / "busy.csv").write_text("minute_index,writes\n0,60\n")
    found = read_traffic_by_table(tmp_path)
    assert {name: (each.minutes, each.is_idle, each.is_unknown) for name, each in found.items()} == {
        "busy": (1, False, False),
        "idle": (0, False, True),
    }
    assert found["idle"].notes == (
        f"{path}: has no datapoints of what the table consumes, and none of ProvisionedReadCapacityUnits or "
        "ProvisionedWriteCapacityUnits, which would tell an idle table from one that is not there",
    )


def test_metric_math_is_refused_and_left_out_beside_the_metric_itself(tmp_path: Path) -> None:
    rate = _result("ConsumedWriteCapacityUnits", ("10:00", 100), name="e1")
    queries = [{"Id": "e1", "Expression": "m1/PERIOD(m1)"}]
    path = _file(tmp_path, _data(rate, MetricDataQueries=queries))
    with pytest.raises(TrafficError) as refused:
        read_traffic(path)
    assert str(refused.value) == (
        f"{path}, MetricDataResults[0]: 'ConsumedWriteCapacityUnits' is the result of the expression 'm1/PERIOD(m1)', "
        "which is not read; ask for the metric itself with the statistic Sum"
    )
    itself = _result("orders ConsumedWriteCapacityUnits", ("10:00", 6_000))
    path = _file(tmp_path, _data(itself, rate, MetricDataQueries=queries))
    assert _rates(path) == {"orders": {"writes": [6_000]}}
    assert read_traffic(path).notes[0] == f"{path}: ignored metrics: 'ConsumedWriteCapacityUnits'"


def test_what_a_file_does_not_tell_is_said(tmp_path: Path) -> None:
    path = _file(tmp_path, "Label,ConsumedReadCapacityUnits\n2026/11/02 10:00:00,60\n2026/11/02 10:01:00,6\n")
    assert _rates(path) == {"graph": {"reads": [60, 6]}}
    assert read_traffic(path).notes == (
        f"{path}: the file's name does not end with a zone such as -UTC+2.csv: times are read as UTC",
        f"{path}: the file does not tell its statistic: values are taken as sums",
        f"{path}: the file does not tell its period: it is taken as 60 s, the shortest distance between two datapoints",
    )


@pytest.mark.parametrize(
    ("name", "table", "hour"),
    [
        ("carts-UTC+2.csv", "carts", 8),
        ("carts-UTC-5.csv", "carts", 15),
        ("carts-UTC+5_30.csv", "carts", 4),
        ("carts-UTC.csv", "carts", 10),
        ("carts-UTC+2 (1).csv", "carts", 8),
        ("my-carts-2026_11_02_00_00_00-2026_11_03_00_00_00-UTC+1.csv", "my-carts", 9),
        ("carts-UTC+2.csv.gz", "carts", 8),
        ("-UTC+2.csv", "-UTC+2", 8),
    ],
)
def test_zone_at_the_end_of_an_export_s_name_is_no_part_of_the_table_s(
    tmp_path: Path, name: str, table: str, hour: int
) -> None:
    path = _file(tmp_path, "Label,ConsumedReadCapacityUnits\n2026/11/02 10:00:00,60\n", name)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_traffic_by_table(path)) == [table]
    traffic = read_traffic(path)
    assert traffic.start.hour == hour
    assert not any("does not end with a zone" in note for note in traffic.notes)
    plain = _file(tmp_path, "timestamp,reads\n2026-11-02T10:00:00Z,60\n", "other-UTC-5.csv")
    assert list(read_traffic_by_table(plain)) == ["other-UTC-5"], "columns of CSV are no export of the console"


@pytest.mark.parametrize(
    ("label", "name", "table", "stream"),
    [
        ("ConsumedReadCapacityUnits", "m1", "data", "reads"),
        ("carts ConsumedReadCapacityUnits", "m1", "carts", "reads"),
        ("carts by_user ConsumedWriteCapacityUnits", "m1", "carts", "writes:by_user"),
        ("TableName=carts ConsumedWriteCapacityUnits Sum 60", "m1", "carts", "writes"),
        ("Writes of a cart", "consumedWriteCapacityUnits", "data", "writes"),
        ("Writes of a cart", "writes", "data", "writes"),
        ("reads:by_user", "m1", "data", "reads:by_user"),
    ],
)
def test_labels_and_ids_tell_table_and_stream(tmp_path: Path, label: str, name: str, table: str, stream: str) -> None:
    path = _file(tmp_path, _data(_result(label, ("10:00", 7), name=name)), "data.json")
    assert _rates(path) == {table: {stream: [7]}}


def test_pages_of_a_metric_are_joined_and_tables_have_one_period(tmp_path: Path) -> None:
    pages = [
        _data(_result("orders ConsumedReadCapacityUnits", ("10:00", 1), ("10:05", 2)) | {"StatusCode": "PartialData"}),
        _data(_result("carts ConsumedReadCapacityUnits", ("10:00", 4), name="m2")),
        _data(_result("orders ConsumedReadCapacityUnits", ("10:05", 2), ("10:10", 3))),
    ]
    path = _file(tmp_path, "\n".join(pages), "data.json")
    assert {name: sum(streams["reads"]) for name, streams in _rates(path).items()} == {"orders": 6, "carts": 4}
    assert {traffic.source_bin_seconds for traffic in read_traffic_by_table(path).values()} == {300}
    assert _rates(_file(tmp_path, f"[{','.join(pages)}]", "list.json")) == _rates(path)


STATISTICS = '{"Label": "ConsumedReadCapacityUnits", "Datapoints": [%s]}'
QUERY = {
    "Id": "m1",
    "MetricStat": {"Metric": {"MetricName": "ConsumedReadCapacityUnits"}, "Period": 60, "Stat": "Average"},
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            f"Full label,{FULL} ConsumedWriteCapacityUnits Average 60\n2026/11/02 10:00:00,5\n",
            f", line 1: statistic of '{FULL} ConsumedWriteCapacityUnits Average 60' is Average, expected Sum; "
            f"{ONLY_SUMS}",
            id="average of the console",
        ),
        pytest.param(
            _data(_result("ConsumedReadCapacityUnits p99", ("10:00", 7))),
            f", MetricDataResults[0]: statistic of 'ConsumedReadCapacityUnits p99' is p99, expected Sum; {ONLY_SUMS}",
            id="percentile in a label",
        ),
        pytest.param(
            _data(_result("mine", ("10:00", 7)), MetricDataQueries=[QUERY]),
            f", MetricDataResults[0]: statistic of 'mine' is Average, expected Sum; {ONLY_SUMS}",
            id="average in a query",
        ),
        pytest.param(
            STATISTICS % '{"Timestamp": "2026-11-02T10:00:00Z", "Average": 5, "Maximum": 6}',
            f", datapoint 0: has Average, Maximum, expected Sum; {ONLY_SUMS}",
            id="other statistics",
        ),
        pytest.param(
            STATISTICS % '{"Timestamp": "10 o\'clock", "Sum": 5}',
            ', datapoint 0: time is "10 o\'clock"; write it as 2026-11-02T05:00:00Z',
            id="no time",
        ),
        pytest.param(
            STATISTICS % '{"Timestamp": "2026-11-02T10:00:00Z", "Sum": NaN}',
            ", datapoint 0: ConsumedReadCapacityUnits are 'nan'; give the units requested in the bin, 0 or more",
            id="NaN",
        ),
        pytest.param(
            STATISTICS % "7", ", datapoint 0: is 7; expected an object with 'Timestamp' and 'Sum'", id="no datapoint"
        ),
        pytest.param(
            STATISTICS % "",
            ": has no datapoints of what the table consumes, and none of ProvisionedReadCapacityUnits or "
            "ProvisionedWriteCapacityUnits, which would tell an idle table from one that is not there",
            id="no datapoints",
        ),
        pytest.param(
            _data(_result("ConsumedReadCapacityUnits", ("10:00", 7), ("10:00", 8))),
            ", MetricDataResults[0], datapoint 1: ConsumedReadCapacityUnits is 8, but datapoint 0 has the same time "
            "and 7; give each datapoint once",
            id="two values of one time",
        ),
        pytest.param(
            _data(_result("ConsumedReadCapacityUnits", ("10:00", 7)) | {"StatusCode": "PartialData"}),
            ", MetricDataResults[0]: StatusCode is 'PartialData', so datapoints are missing; fetch all pages",
            id="partial",
        ),
        pytest.param(
            _data(_result("ConsumedReadCapacityUnits") | {"Values": [1]}),
            ", MetricDataResults[0]: 'Timestamps' and 'Values' must be lists of one length; fetch it again",
            id="other lengths",
        ),
        pytest.param(
            _data(_result("sum of ConsumedReadCapacityUnits", ("10:00", 7))),
            ", MetricDataResults[0]: label is 'sum of ConsumedReadCapacityUnits'; expected METRIC, TABLE METRIC or "
            "TABLE INDEX METRIC",
            id="odd label",
        ),
        pytest.param(
            _data(_result("SuccessfulRequestLatency", ("10:00", 7)), _result("SystemErrors", ("10:00", 7))),
            ": has no metric ConsumedReadCapacityUnits or ConsumedWriteCapacityUnits by its label or id; found only "
            "'SuccessfulRequestLatency', 'SystemErrors'",
            id="other metrics",
        ),
        pytest.param(
            _data(
                _result("orders ConsumedReadCapacityUnits Sum 60", ("10:00", 7)),
                _result("orders ConsumedWriteCapacityUnits Sum 300", ("10:00", 7)),
            ),
            ", MetricDataResults[0]: periods are 60 and 300 s; fetch all metrics of a table with one period",
            id="two periods",
        ),
        pytest.param(
            _data(_result("ConsumedReadCapacityUnits Sum 0", ("10:00", 7))),
            ", MetricDataResults[0]: period of 'ConsumedReadCapacityUnits Sum 0' is '0'; expected seconds from 1 to "
            "2,592,000",
            id="no period",
        ),
        pytest.param(
            '{"Metrics": []}',
            ": has neither 'MetricDataResults' nor 'Datapoints'; give what aws cloudwatch get-metric-data or "
            "get-metric-statistics prints as JSON",
            id="other JSON",
        ),
        pytest.param("[", ", line 1: is not valid JSON: Expecting value", id="half of a list"),
        pytest.param("[" * 100_000, ": is not valid JSON: RecursionError", id="nested too deeply"),
        pytest.param(
            "Id,m1\n2026/11/02 10:00:00,5\n",
            ": has no line 'Label' before its first row; download it again from CloudWatch",
            id="no label",
        ),
        pytest.param(
            "Label,ConsumedReadCapacityUnits\n2026/11/02 10:00:00,5\nyesterday,6\n",
            ", line 3: timestamp is 'yesterday'; write it as 2026/11/02 05:00:00",
            id="no time in the console's",
        ),
        pytest.param(
            "Label,ConsumedReadCapacityUnits\n2026/11/02 10:00:00,5,6\n",
            ", line 2: has 3 columns, but the lines in front have 2; download the file again",
            id="more columns than labels",
        ),
    ],
)
def test_export_that_cannot_be_used_is_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(TrafficError) as refused:
        read_traffic(path)
    assert str(refused.value) == f"{path}{message}"
