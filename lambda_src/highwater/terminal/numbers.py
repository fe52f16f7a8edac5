"""Whole numbers on the command line."""

from __future__ import annotations

import click


class WholeNumber(click.IntRange):
    """A click type for whole numbers within a range, whose messages say that a fraction is none."""

    name = "whole number"
