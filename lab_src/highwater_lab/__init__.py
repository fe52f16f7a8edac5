"""Highwater's lab: simulation, rehearsals, recommendations, reports, and the client side of the local cloud."""
