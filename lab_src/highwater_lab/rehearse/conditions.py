"""Under what conditions tables are simulated: the delays of AWS, quotas, prices and what was bought before."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from highwater_lab.services.prices import DEFAULT_REGION, NO_COMMITMENTS, Commitments, Prices, load_prices
from highwater_lab.services.timing import Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions of a simulation that neither the template nor the traffic says.

    Attributes:
        timing: The delays of the AWS services.
        price_region: The region whose prices apply; by default the table's own.
        region: The region of a table whose template does not say it; by default us-east-1.
        prices_file: The file of prices; by default the lab's.
        commitments: Reserved capacity and savings plans. By default none.
        has_config_recorder: Whether AWS Config records each change of tables and alarms. By default it does not.
        table_quota_units: The account's quota of units per table and index; by default that of the setup.
        account_quota_units: The account's quota of all provisioned units; by default that of the setup.
    """

    timing: Timing = field(default_factory=Timing)
    price_region: str | None = None
    region: str | None = None
    prices_file: Path | None = None
    commitments: Commitments = NO_COMMITMENTS
    has_config_recorder: bool = False
    table_quota_units: int | None = None
    account_quota_units: int | None = None

    def prices(self, region: str | None) -> Prices:
        """Return the prices of a table in *region*, `None` if that is not known.

        Raises `PriceError` if they cannot be read, or the file has none of the region.
        """
        chosen = self.price_region or region or self.region or DEFAULT_REGION
        return load_prices(chosen, self.prices_file).committed(
            self.commitments, has_config_recorder=self.has_config_recorder
        )

    def without_reserved(self) -> Conditions:
        """Return these conditions without reserved capacity."""
        return replace(self, commitments=Commitments(has_savings_plan=self.commitments.has_savings_plan))
