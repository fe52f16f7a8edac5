"""A part of the suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from acceptance.cdk import App
from acceptance.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Something that the suite deploys, checks and measures.

    Attributes:
        name: What the user calls it in PARTS.
        title: What it does, as a line of the list that is shown before the start.
        minutes: How long it takes in an account, roughly.
        app: The app that it deploys, `None` for none.
        context: Makes the values of the app's context.
        reaches_ceiling: Whether traffic may bring the app's tables up to their ceilings.
        bare_units: Read and write units, together, of the tables that it makes without an app.
        run: Runs it.
    """

    name: str
    title: str
    minutes: int
    run: Callable[[Stage], None]
    app: App | None = None
    context: Callable[[Stage], dict[str, str]] = lambda _: {}
    reaches_ceiling: bool = False
    bare_units: int = 0
