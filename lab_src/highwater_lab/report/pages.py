"""HTML pages, filled from the templates of the folder `templates`, which escape whatever is put into them.

No other place writes HTML. A page is one file: its style sheet and its scripts are in it, and its content security
policy forbids it to load anything.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_INSTANT: Final = re.compile(r"([A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d UTC)")
_WORDS: Final = {
    "declared": "What the template declares: its own capacity, auto scaling, windows and scaler.",
    "without queue": "What the template declares, but with all writes sent to the table at once.",
    "without shards": "What the template declares, but with one key in the place of its shards.",
    "native": "Application Auto Scaling alone, at this target utilization, without windows.",
    "on-demand": "On-demand capacity mode: nothing is provisioned, each request is paid for.",
    "fixed": "Constant capacity, which nothing scales.",
    "highwater-floor": "Highwater's scaler, which raises and lowers the floors of auto scaling.",
    "highwater-direct": "Highwater's scaler, which sets the capacity itself, without auto scaling.",
    "highwater-floor-pulse": "Highwater's scaler moves floors, and clients report their demand by pulses.",
    "highwater-direct-pulse": "Highwater's scaler sets the capacity, and clients report their demand by pulses.",
    "clairvoyant": "The cheapest hourly capacities that throttle nothing, with all demand known in advance: a lower "
    "bound of the cost, which nobody can deploy.",
    "$/month": "USD for a month of 730 hours of this traffic, without what is paid once.",
    "USD a month": "For 730 hours of this traffic, without what is paid once.",
    "throttled": "The share of the requested units that DynamoDB refuses because capacity is missing.",
    "on demand": "What the table would cost a month in on-demand capacity mode, in USD.",
    "minutes": "The minutes in which anything is throttled.",
    "once, $": "USD paid once, for raising the high-water mark.",
    "unwritten": "Write units that still wait in the queue when the traffic ends. No cost is counted for them.",
    "used": "Consumed over provisioned units. Above 100 %, the burst bucket supplied the difference.",
    "decreases": "Decreases of capacity that DynamoDB accepted; it allows a limited number a day.",
    "refused": "Decreases of capacity that DynamoDB refused, because the day's allowed decreases were used up. "
    "Capacity stays high, and is paid for, until the next is allowed.",
    "peak": "The most units per second that were provisioned.",
}


def fill_page(template: str, title: str, **parts: Any) -> bytes:
    """Return a page: the template of that name, with its title and what else it asks for, all of it text."""
    # half of a surrogate pair, which a name of a template may have, cannot be written
    return _templates().get_template(template).render(title=title, **parts).encode("utf-8", "replace")


@cache
def _templates() -> Environment:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {
        "whole": "{:,.0f}".format,
        "cents": "{:,.2f}".format,
        "duration": lambda seconds: str(timedelta(seconds=seconds)),
        # with an argument, as in `native:50`, a word means the same
        "meaning": lambda word: _WORDS.get(word) or _WORDS.get(word.partition(":")[0]),
        # every second part is an instant
        "split_at_instants": _INSTANT.split,
    }
    return made
