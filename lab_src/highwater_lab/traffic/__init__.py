"""Traffic: the units that applications request from a table and its indexes, from files, CloudWatch or scenarios."""

from highwater_lab.traffic.cloudwatch import fetch_traffic
from highwater_lab.traffic.csv_files import read_traffic, write_traffic
from highwater_lab.traffic.scenarios import SCENARIOS, scenario
from highwater_lab.traffic.series import Stream, Traffic, TrafficError

__all__ = [
    "SCENARIOS",
    "Stream",
    "Traffic",
    "TrafficError",
    "fetch_traffic",
    "read_traffic",
    "scenario",
    "write_traffic",
]
