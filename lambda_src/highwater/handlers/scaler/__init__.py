"""The scaler's function: read each table's state from AWS, review it in the core, and apply the review."""
