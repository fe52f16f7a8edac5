"""Pacing: how requests keep within a budget. Integers, and times that are passed in."""
