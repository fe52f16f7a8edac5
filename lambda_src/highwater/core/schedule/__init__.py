"""The bounds that a plan asks for at an instant, and the scheduled actions that apply them."""
