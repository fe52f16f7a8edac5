"""The coordinator of boosts: it answers jobs, writes their leases, and runs the scaler's turn, which sets floors."""
