"""The parts of the suite, and all of them in the order in which they run."""

from __future__ import annotations

from typing import Final

from acceptance.parts.coordinators import BOOSTS, PULSES
from acceptance.parts.raises import INDEX_BUILD, RAISES
from acceptance.parts.replicas import REPLICAS
from acceptance.parts.surge import SURGE
from acceptance.parts.windows import STACK_ORDER, WINDOWS
from acceptance.stage import Part
from highwater.core import HighwaterError

PARTS: Final = (WINDOWS, STACK_ORDER, RAISES, INDEX_BUILD, REPLICAS, BOOSTS, PULSES, SURGE)


def choose(names: str) -> tuple[Part, ...]:
    """The parts with these names, separated by commas or blanks, in the suite's order; all of them for no name."""
    chosen = set(names.replace(",", " ").split())
    unknown = chosen - {part.name for part in PARTS}
    if unknown:
        known = ", ".join(part.name for part in PARTS)
        raise HighwaterError(f"PARTS has {', '.join(sorted(unknown))}; the parts are {known}")
    return tuple(part for part in PARTS if not chosen or part.name in chosen)
