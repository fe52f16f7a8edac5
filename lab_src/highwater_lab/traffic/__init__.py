"""Traffic: the units that applications request from a table and its indexes, from files, CloudWatch or scenarios."""

from highwater_lab.traffic.cloudwatch import fetch_traffic
from highwater_lab.traffic.csv_files import write_traffic
from highwater_lab.traffic.reading import read_traffic, read_traffic_by_table
from highwater_lab.traffic.scenarios import SCENARIOS, scenario
from highwater_lab.traffic.series import Stream, Traffic, TrafficError

__all__ = [
    "SCENARIOS",
    "Stream",
    "Traffic",
    "TrafficError",
    "fetch_traffic",
    "read_traffic",
    "read_traffic_by_table",
    "scenario",
    "write_traffic",
]
