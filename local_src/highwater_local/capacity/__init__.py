"""Live capacity: what requests to this cloud's tables cost, and which of them are throttled."""
