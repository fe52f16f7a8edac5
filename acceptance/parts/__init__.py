"""The parts of the suite, and all of them in the order in which they run."""

from __future__ import annotations

from typing import Final

from acceptance.parts.bursts import burst
from acceptance.parts.functions import boosts, fleet, pulses, surge
from acceptance.parts.indexes import failed_index, index_build
from acceptance.parts.raises import raises, replicas
from acceptance.parts.windows import stack_order, windows
from acceptance.stage import Part
from highwater.core import HighwaterError

PARTS: Final = (windows, stack_order, raises, index_build, failed_index, replicas, burst, boosts, pulses, surge, fleet)


def choose(names: str) -> tuple[Part, ...]:
    """The parts with these names, separated by commas or blanks, in the suite's order; all of them for no name."""
    chosen, known = set(names.replace(",", " ").split()), [part.name for part in PARTS]
    if unknown := chosen - set(known):
        raise HighwaterError(f"PARTS has {', '.join(sorted(unknown))}; the parts are {', '.join(known)}")
    return tuple(part for part in PARTS if not chosen or part.name in chosen)
