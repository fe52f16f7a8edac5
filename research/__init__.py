"""Measurements beyond the scoreboard: policies of others, designs and figures of articles, single benchmarks."""
