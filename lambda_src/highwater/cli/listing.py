"""How `highwater status` shows managed tables: a line for each table, then the targets of each scaler in a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from highwater.cli.situation import FixedBelowFloor, MissingTable, Seen, Situation, UnmanagedIndex
from highwater.core.names import target_label
from highwater.core.units import Dimension
from highwater.terminal.console import Hanging

_UNITS = {Dimension.READ: "RCU", Dimension.WRITE: "WCU"}
# wider than any line
_UNBOUNDED = 10_000
_NAMES = ("table", "target")
_NUMBERS = ("now", "used", "floor", "relief", "ceiling", "throttled", "lowered", "next, UTC")
_LISTS = ("windows", "boosts")
_COLUMNS = (*_NAMES, *_NUMBERS, *_LISTS)
# What a narrow terminal does without, the first first: the lines above the table tell of windows, boosts and throttles.
_LEFT_OUT_FIRST = ("boosts", "windows", "lowered")
_LEFT_OUT_THEN = ("throttled", "used")
_LEFT_OUT_LAST = ("next, UTC", "ceiling")
# To how many characters names are cut before more is left out, and after; not so far that two rows look alike.
_LEGIBLE = {"table": 12, "target": 16}
_SHORTEST = dict.fromkeys(_NAMES, 6)


def listed(seen: Sequence[Seen]) -> RenderableType:
    """Return all that `highwater status` shows."""
    if not seen:
        return Text("no scaler manages a table in this region")
    by_scaler: dict[str, list[Seen]] = {}
    for each in seen:
        by_scaler.setdefault(each.scaler, []).append(each)
    tables = (_Listing(scaler, by_scaler[scaler]) for scaler in sorted(by_scaler))
    return Group(*(Hanging(line) for line in lines(seen)), Text(""), *tables)


def lines(seen: Sequence[Seen]) -> Iterator[str]:
    """Yield a line for each table, and one for each index that is not managed."""
    by_table: dict[tuple[str, str], list[Situation]] = {}
    others: dict[tuple[str, str], list[str]] = {}
    for each in seen:
        place = each.table, each.scaler
        by_table.setdefault(place, [])
        if isinstance(each, Situation):
            by_table[place].append(each)
        else:
            others.setdefault(place, []).append(each.line())
    for place, situations in by_table.items():
        if situations:
            yield _summary(situations)
        yield from others.get(place, ())
    yield from _unread(each for each in seen if isinstance(each, Situation))


def _unread(situations: Iterable[Situation]) -> Iterator[str]:
    """Yield what could not be read: a line for each cause, with the tables that have it."""
    tables: dict[str, dict[str, None]] = {}
    for situation in situations:
        for note in situation.notes:
            table, _, cause = note.partition(": ")
            tables.setdefault(cause, {})[table] = None
    for cause, names in tables.items():
        yield f"{', '.join(names)}: {cause}"


def _summary(situations: Sequence[Situation]) -> str:
    """One table in a line: its capacity with the causes, and what else an operator should know."""
    of_table = [each for each in situations if each.target.index is None]
    shown = [(_capacity(each), _causes(each)) for each in of_table or situations]
    if len({causes for _, causes in shown}) == 1:
        capacity = " and ".join(dict.fromkeys(capacity for capacity, _ in shown)) + shown[0][1]
    else:
        capacity = ", ".join(capacity + causes for capacity, causes in shown)
    parts = [capacity, *_exceptions(situations), _throttles(situations)]
    return f"{situations[0].table}: {'; '.join(parts)}"


def _capacity(situation: Situation) -> str:
    if not situation.provisioned:
        return "on demand"
    floor = 0 if situation.registered is None or situation.is_paused else situation.registered.min
    of = f" of {floor:,}" if floor > situation.provisioned else ""
    index = "" if situation.target.index is None else f" of index {situation.target.index}"
    return f"{situation.provisioned:,}{of} {_UNITS[situation.target.dimension]}{index}"


def _causes(situation: Situation) -> str:
    """Why the floor is not the plan's base, in a clause with a blank in front; empty if it is."""
    causes = []
    planned = situation.planned.min
    # in DIRECT mode there is no floor but the capacity itself
    floor = situation.provisioned if situation.registered is None else situation.registered.min
    is_below = floor < planned and bool(situation.provisioned)
    highest = [each for each in situation.open_windows if each.floor == planned]
    if highest:
        last = max(highest, key=lambda each: each.closes)
        names = ", ".join(each.name for each in highest)
        until = f"window {names} until {_local(last.closes, situation.at, last.zone)}"
        causes.append(f"below the {planned:,} of {until}" if is_below else f"by {until}")
    elif is_below:
        causes.append(f"below the {planned:,} of the plan")
    live = [lease for lease in situation.boosts if lease.is_live(situation.at)]
    if live:
        ends = max(lease.ends for lease in live)
        what = f"{'a boost' if len(live) == 1 else f'{len(live)} boosts'} until {_local(ends, situation.at)}"
        causes.append(f"by {what}" if situation.boosted or floor > planned else f"with {what} on its way")
    if situation.relief:
        causes.append("by demand")
    return f" {' and '.join(causes)}" if causes else ""


def _local(instant: datetime, now: datetime, zone: ZoneInfo | None = None) -> str:
    """An instant in a zone, which is named by its place: `03:30 Berlin`, with the weekday if that is another day."""
    at, here = (instant, now) if zone is None else (instant.astimezone(zone), now.astimezone(zone))
    place = "UTC" if zone is None else zone.key.rpartition("/")[2].replace("_", " ")
    return f"{at:%H:%M} {place}" if at.date() == here.date() else f"{at:%a %d %b %H:%M} {place}"


def _exceptions(situations: Sequence[Situation]) -> Iterator[str]:
    """Yield what is not as it should be, targets of the same cause together."""
    paused = [each for each in situations if each.is_paused]
    if paused:
        yield "paused" if len(paused) == len(situations) else f"paused: {_targets(paused)}"
    moved = [each for each in situations if each.mode.moves_floors and each.registered is None]
    if moved:
        yield f"no scalable target for {_targets(moved)}, so deploy again"
    yield from (f"{each.target.label}: {each.failure}" for each in situations if each.failure)
    for each in situations:
        if each.mark is not None and each.mark.is_rising:
            to = f" to {each.mark.wanted:,}" if each.mark.wanted > each.mark.units else ""
            yield f"high-water mark of {each.target.label} being raised from {each.mark.units:,}{to}"


def _targets(situations: Sequence[Situation]) -> str:
    return ", ".join(each.target.label for each in situations)


def _throttles(situations: Sequence[Situation]) -> str:
    if any(each.throttled is None for each in situations):
        return "throttles could not be read"
    counts = [(each.target.label, each.throttled or 0) for each in situations]
    total = sum(count for _, count in counts)
    if not total:
        return "nothing throttled in the last hour"
    where = ", ".join(f"{label} {count:,}" for label, count in counts if count)
    return f"{total:,} {'request' if total == 1 else 'requests'} throttled in the last hour: {where}"


class _Listing:
    """The targets of one scaler, each on one line; on a narrow terminal, columns are left out and names are cut."""

    def __init__(self, scaler: str, seen: Sequence[Seen]) -> None:
        self._title = f"Scaler {scaler}" if scaler else "Tables chosen by tags"
        self._rows = [row for each in seen for row in _rows(each)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = [name for name in _COLUMNS if any(row.get(name) for row in self._rows)]
        natural = {name: max(len(row[name]) for row in self._rows) for name in _NAMES}
        left_out: list[str] = []

        def excess(longest: dict[str, int]) -> int:
            view = self._table(columns, longest, left_out)
            return console.measure(view, options=options.update(max_width=_UNBOUNDED)).maximum - options.max_width

        def cut(least: dict[str, int]) -> dict[str, int]:
            longest = dict(natural)
            for _ in range(excess(longest)):
                name = max(_NAMES, key=lambda each: longest[each] - least[each])
                longest[name] = max(longest[name] - 1, min(least[name], natural[name]))
            return longest

        legible, shortest = self._distinct(_LEGIBLE), self._distinct(_SHORTEST)
        for names, least in ((_LEFT_OUT_FIRST, natural), (_LEFT_OUT_THEN, legible), (_LEFT_OUT_LAST, shortest)):
            for name in names:
                if name in columns and excess(cut(least)) > 0:
                    columns.remove(name)
                    left_out.append(name)
        fits = excess(cut(legible)) <= 0
        yield self._table(columns, cut(legible if fits else shortest), left_out)

    def _distinct(self, least: dict[str, int]) -> dict[str, int]:
        """Return *least*, or the lowest width above it at which different names stay different when they are cut."""
        widths = {}
        for name in _NAMES:
            values = {row[name] for row in self._rows}
            longest = max(map(len, values))
            widths[name] = min(least[name], longest)
            while len({_cut(each, widths[name]) for each in values}) < len(values):
                widths[name] += 1
        return widths

    def _table(self, columns: Sequence[str], longest: dict[str, int], left_out: Sequence[str]) -> Table:
        view = Table(title=self._title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        if left_out:
            view.caption = f"left out for width: {', '.join(left_out)}"
            view.caption_justify = "left"
        for name in columns:
            view.add_column(name, no_wrap=True, justify="left" if name in _NAMES or name in _LISTS else "right")
        for row in self._rows:
            cut = row | {name: _cut(row[name], longest[name]) for name in _NAMES}
            view.add_row(*(cut.get(name, "") for name in columns))
        return view


def _cut(name: str, width: int) -> str:
    """Cut a name in its middle, and not the dimension at its end, by which the two rows of an index differ.

    Quotes tell that it is an index, so the word before them goes first.
    """
    if len(name) > width:
        name = name.removeprefix("index ")
    if len(name) <= width:
        return name
    kept = next((f" {each}" for each in Dimension if name.endswith(f" {each}")), "")
    body = name.removesuffix(kept)
    shown = max(0, width - len(kept) - 1)
    tail = shown // 2
    return f"{body[: shown - tail]}…{body[len(body) - tail :]}{kept}"[-width:]


def _rows(seen: Seen) -> Iterator[dict[str, str]]:
    if isinstance(seen, MissingTable):
        yield {"table": seen.table, "target": seen.why}
        return
    if isinstance(seen, UnmanagedIndex):
        for dimension in Dimension:
            units = f"{seen.provisioned.of(dimension):,}"
            yield {"table": seen.table, "target": target_label(seen.index, dimension), "now": units, "floor": "none"}
        return
    if isinstance(seen, FixedBelowFloor):
        now, floor = f"{seen.provisioned:,}", f"{seen.floor:,}"
        yield {"table": seen.table, "target": seen.target.label, "now": now, "floor": floor}
        return
    bounds = seen.registered or seen.planned
    yield {
        "table": seen.table,
        "target": seen.target.label,
        "now": f"{seen.provisioned:,}",
        "used": "" if seen.used_percent is None else f"{seen.used_percent:,}%",
        "floor": f"{bounds.min:,}",
        "relief": "paused" if seen.is_paused else f"{seen.relief:,}" if seen.relief else "",
        "ceiling": f"{bounds.max:,}",
        "throttled": "" if seen.throttled is None else f"{seen.throttled:,}",
        "lowered": str(seen.decreases_used),
        "next, UTC": "" if seen.next_change is None else f"{seen.next_change[0]:%a %H:%M}",
        "windows": ", ".join(each.name for each in seen.open_windows),
        "boosts": ", ".join(lease.id for lease in seen.boosts),
    }
