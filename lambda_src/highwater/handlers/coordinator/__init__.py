"""The coordinator of boosts: it answers jobs, writes their leases, and has the scaler's turn set the floors."""
