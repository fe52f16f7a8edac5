"""Traffic: the units that applications request from a table and its indexes, from files, CloudWatch or scenarios."""

from highwater_lab.traffic.cloudwatch import FetchPlan, Usage, fetch_traffic, fetch_usage, plan_fetch, plan_fetch_of_all
from highwater_lab.traffic.csv_files import write_traffic
from highwater_lab.traffic.reading import FileTraffic, read_files, read_traffic, read_traffic_by_table
from highwater_lab.traffic.scenarios import SCENARIOS, scenario
from highwater_lab.traffic.series import Stream, Traffic, TrafficError
from highwater_lab.traffic.summary import StreamSummary, summarize

__all__ = [
    "SCENARIOS",
    "FetchPlan",
    "FileTraffic",
    "Stream",
    "StreamSummary",
    "Traffic",
    "TrafficError",
    "Usage",
    "fetch_traffic",
    "fetch_usage",
    "plan_fetch",
    "plan_fetch_of_all",
    "read_files",
    "read_traffic",
    "read_traffic_by_table",
    "scenario",
    "summarize",
    "write_traffic",
]
