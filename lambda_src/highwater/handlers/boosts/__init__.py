"""The coordinator of boosts: it answers jobs, keeps their leases, and has the scaler's turn set the floors."""
