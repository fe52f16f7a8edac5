"""Command-line options common to the commands for live tables."""

from __future__ import annotations

import click

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
region_option = click.option(
    "--region", help="Region of the scaler and its tables. By default the region of your AWS configuration."
)
