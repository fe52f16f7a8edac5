"""Options that the commands for live tables share."""

from __future__ import annotations

import click

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
region_option = click.option(
    "--region", help="Region of the scaler and its tables. By default the one of your AWS configuration."
)
