"""Highwater's lab: the local cloud, and pictures of plans."""
