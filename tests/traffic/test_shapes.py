"""The same traffic reads back equal from every shape in which users have it."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater_lab.traffic import Stream, Traffic, read_traffic, read_traffic_by_table, write_traffic
from tests.traffic.shapes import (
    ENCODINGS,
    TIMES,
    Units,
    as_console_export,
    as_csv,
    as_metric_data,
    as_metric_statistics,
    packed,
)

READ, WRITE = Dimension.READ, Dimension.WRITE
STREAMS = (Stream(None, READ), Stream(None, WRITE), Stream("by_status", READ), Stream("by.Status-2", WRITE))
randoms = st.integers(0, 2**32).map(Random)
slow_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def starts(draw: st.DrawFn) -> datetime:
    return datetime(1990, 1, 1, tzinfo=UTC) + timedelta(minutes=draw(st.integers(0, 60 * 24 * 365 * 100)))


@st.composite
def series(draw: st.DrawFn, least: float = 0.0, tables: int = 3) -> Units:
    """Units of some tables, which all have the same streams; the first two bins and the last are above 0."""
    streams = draw(st.lists(st.sampled_from(STREAMS), min_size=1, unique=True))
    names = draw(
        st.lists(st.sampled_from(["orders", "Carts-2", "my.table_3"]), min_size=1, max_size=tables, unique=True)
    )
    length = draw(st.integers(3, 20))
    value = st.one_of(st.integers(0, 10**6), st.floats(0, 10**6)).map(float).filter(lambda units: units >= least)
    made = {}
    for name in names:
        lists = {stream: draw(st.lists(value, min_size=length, max_size=length)) for stream in streams}
        for values in lists.values():
            for place in (0, 1, -1):
                values[place] += 0.5
        made[name] = lists
    return made


def _expected(units: Units, start: datetime, seconds: int) -> dict[str, Traffic]:
    return {
        name: Traffic.from_counts(name, streams, bin_seconds=seconds, start=start)
        for name, streams in sorted(units.items())
    }


def _equal(found: dict[str, Traffic], units: Units, start: datetime, seconds: int) -> None:
    expected = _expected(units, start, seconds)
    assert list(found) == list(expected)
    for name, traffic in found.items():
        assert traffic == expected[name]


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("form", [(",", False), ("\t", False), (";", False), (";", True)], ids=repr)
@settings(slow_folder, max_examples=20)
@given(
    units=series(),
    start=starts(),
    seconds=st.sampled_from([60, 300, 3600]),
    random=randoms,
    encoding=st.sampled_from(ENCODINGS),
)
def test_csv_of_any_separator_encoding_and_time(
    tmp_path: Path,
    units: Units,
    start: datetime,
    seconds: int,
    random: Random,
    form: tuple[str, bool],
    encoding: str,
    times: str,
) -> None:
    separator, comma = form
    content = as_csv(units, start, seconds, random, separator=separator, comma=comma, encoding=encoding, times=times)
    path = tmp_path / "many.txt"
    path.write_bytes(packed(content) if random.random() < 0.5 else content)
    found = read_traffic_by_table(path)
    _equal(found, units, start, seconds)
    assert all(traffic.notes[0] == f"{path}: ignored columns: 'Host'" for traffic in found.values())


@slow_folder
@given(series(), starts(), st.sampled_from([60, 300, 3600]), randoms, st.integers(-12, 14))
def test_export_of_the_console(
    tmp_path: Path, units: Units, start: datetime, seconds: int, random: Random, hours: int
) -> None:
    path = tmp_path / f"graph-UTC{hours:+}.csv"
    path.write_bytes(as_console_export(units, start, seconds, random, hours=hours))
    found = read_traffic_by_table(path)
    _equal(found, units, start, seconds)
    assert not [note for traffic in found.values() for note in traffic.notes]


@slow_folder
@given(series(), starts(), st.sampled_from([60, 300, 3600]), randoms, st.booleans())
def test_answer_of_get_metric_data(
    tmp_path: Path, units: Units, start: datetime, seconds: int, random: Random, has_queries: bool
) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(as_metric_data(units, start, seconds, random, has_queries=has_queries))
    _equal(read_traffic_by_table(path), units, start, seconds)


@slow_folder
@given(series(tables=1), starts(), st.sampled_from([60, 300, 3600]), randoms)
def test_answers_of_get_metric_statistics(
    tmp_path: Path, units: Units, start: datetime, seconds: int, random: Random
) -> None:
    ((name, streams),) = units.items()
    of_table = {stream: values for stream, values in streams.items() if stream.index is None}
    if of_table:
        path = tmp_path / f"{name}.json"
        path.write_bytes(as_metric_statistics(of_table, start, seconds, random))
        _equal({name: read_traffic(path)}, {name: of_table}, start, seconds)


@slow_folder
@given(series(), starts(), st.sampled_from([60, 300]), randoms, st.booleans())
def test_parquet(tmp_path: Path, units: Units, start: datetime, seconds: int, random: Random, is_text: bool) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [
        {"Table": name, "Timestamp": at.isoformat() if is_text else at}
        | {stream.label: values[number] for stream, values in streams.items()}
        for name, streams in units.items()
        for number, at in enumerate(
            start + timedelta(seconds=seconds * n) for n in range(len(next(iter(streams.values()))))
        )
    ]
    random.shuffle(rows)
    path = tmp_path / "many.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=random.randint(1, 10))
    _equal(read_traffic_by_table(path), units, start, seconds)


@slow_folder
@given(series(), starts())
def test_folder_with_a_file_for_each_table_as_written(
    tmp_path_factory: pytest.TempPathFactory, units: Units, start: datetime
) -> None:
    folder = tmp_path_factory.mktemp("traffic")
    (folder / "README.md").write_text("no traffic")
    (folder / "._orders.csv").write_bytes(b"\0\5\x16\7")
    for name, traffic in _expected(units, start, 60).items():
        write_traffic(traffic, folder / f"{name}.csv")
    _equal(read_traffic_by_table(folder), units, start, 60)
    for name in units:
        assert read_traffic(folder, table=name) == _expected(units, start, 60)[name]


@pytest.fixture
def given_input(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.BytesIO]:
    content = io.BytesIO()
    with io.TextIOWrapper(content) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield content


def test_standard_input(given_input: io.BytesIO) -> None:
    given_input.write(packed(b"minute_index,reads\n0,5\n"))
    given_input.seek(0)
    traffic = read_traffic(Path("-"))
    assert (traffic.name, traffic.total_units(Stream(None, READ))) == ("stdin", 5)
