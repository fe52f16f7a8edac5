"""All parts of the suite, in the order in which they run."""

from __future__ import annotations

from typing import Final

from acceptance.parts.boosts import BOOSTS
from acceptance.parts.decreases import DECREASES
from acceptance.parts.examples import EXAMPLES
from acceptance.parts.index_build import INDEX_BUILD
from acceptance.parts.part import Part
from acceptance.parts.pulses import PULSES
from acceptance.parts.raises import RAISES
from acceptance.parts.rules import RULES
from acceptance.parts.scale_in import SCALE_IN
from acceptance.parts.slow_start import SLOW_START
from acceptance.parts.stack_order import STACK_ORDER
from acceptance.parts.surge import SURGE
from acceptance.parts.windows import WINDOWS
from highwater.core import HighwaterError

PARTS: Final = (
    *EXAMPLES,
    WINDOWS,
    STACK_ORDER,
    RAISES,
    SURGE,
    BOOSTS,
    PULSES,
    SCALE_IN,
    SLOW_START,
    DECREASES,
    INDEX_BUILD,
    RULES,
)


class PartError(HighwaterError, ValueError):
    """A part that the suite does not have."""


def choose(names: str) -> tuple[Part, ...]:
    """The parts with these names, separated by commas or blanks, in the suite's order; all of them for no name.

    Raises `PartError` for a name that no part has.
    """
    chosen = set(names.replace(",", " ").split())
    unknown = chosen - {part.name for part in PARTS}
    if unknown:
        known = ", ".join(part.name for part in PARTS)
        raise PartError(f"PARTS has {', '.join(sorted(unknown))}; the parts are {known}")
    return tuple(part for part in PARTS if not chosen or part.name in chosen)
