"""How workers of a simulated job share its rate."""
