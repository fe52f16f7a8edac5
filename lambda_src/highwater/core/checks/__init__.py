"""Validation of plans."""
