"""Clients of the coordinator and of fleets: boosts and pulses, with boto3 alone. What users call is in `highwater`."""
