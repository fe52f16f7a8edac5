"""Measurements: the scoreboard, policies of others, designs and figures of articles, and single benchmarks."""
