"""What is billed for the data of tables, beside capacity: storage, point-in-time recovery, backups, streams.

None of it is simulated: sizes are taken to stay as they are. The 25 GB of class Standard that are free in each region
are not subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from highwater_lab.services.prices import Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class TableData:
    """The data of one table.

    Attributes:
        region: The region.
        is_infrequent_access: Whether the class is Standard-IA.
        storage_gb: The size of the table and all its indexes.
        recovery_gb: The size of the table and its local indexes if it has point-in-time recovery, otherwise 0.
        backup_gb: The size of its on-demand backups.
        has_stream: Whether its stream is on.
    """

    region: str
    is_infrequent_access: bool = False
    storage_gb: float = 0.0
    recovery_gb: float = 0.0
    backup_gb: float = 0.0
    has_stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCosts:
    """What the data of tables costs.

    Attributes:
        tables: The number of tables.
        storage_gb: The size of tables and indexes.
        storage_usd: Its cost, USD a month.
        recovery_gb: The size of what has point-in-time recovery.
        recovery_usd: Its cost, USD a month.
        backup_gb: The size of on-demand backups.
        backup_usd: Their cost, USD a month.
        streams: The number of streams that are on. What reads them is not known.
        stream_read_million: The highest price of a million read requests to one of them.
        unpriced: The regions of tables that are left out, as the file has no such prices of them.
    """

    tables: int = 0
    storage_gb: float = 0.0
    storage_usd: float = 0.0
    recovery_gb: float = 0.0
    recovery_usd: float = 0.0
    backup_gb: float = 0.0
    backup_usd: float = 0.0
    streams: int = 0
    stream_read_million: float = 0.0
    unpriced: tuple[str, ...] = ()

    @property
    def usd_month(self) -> float:
        """What it costs together, in USD a month, without reads of streams."""
        return self.storage_usd + self.recovery_usd + self.backup_usd


def data_costs(tables: Iterable[TableData], prices_of: Callable[[str], Prices]) -> DataCosts:
    """Return what the data of *tables* costs by the prices of their regions."""
    unpriced: dict[str, None] = {}
    priced = []
    for table in tables:
        prices = prices_of(table.region)
        of_class = prices.throughput(is_infrequent_access=table.is_infrequent_access)
        data = prices.regions[prices.region].data
        if of_class.storage_gb_month is None or data is None:
            unpriced[table.region] = None
        else:
            priced.append((table, of_class.storage_gb_month, data))
    return DataCosts(
        tables=len(priced),
        storage_gb=sum(table.storage_gb for table, _, _ in priced),
        storage_usd=sum(table.storage_gb * storage for table, storage, _ in priced),
        recovery_gb=sum(table.recovery_gb for table, _, _ in priced),
        recovery_usd=sum(table.recovery_gb * data.recovery_gb_month for table, _, data in priced),
        backup_gb=sum(table.backup_gb for table, _, _ in priced),
        backup_usd=sum(table.backup_gb * data.backup_gb_month for table, _, data in priced),
        streams=sum(table.has_stream for table, _, _ in priced),
        stream_read_million=max((data.stream_read_million for table, _, data in priced if table.has_stream), default=0),
        unpriced=tuple(sorted(unpriced)),
    )
