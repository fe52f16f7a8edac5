"""The scaler's function: gather what AWS knows of each table, review it in the core, apply what the review says."""
