"""Boosts: the coordinator, who may call it, and the task of a state machine."""
