"""A page on which a plan is dragged over its traffic, and the simulations that answer each change."""
