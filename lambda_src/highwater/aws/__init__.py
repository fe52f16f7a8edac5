"""Adapters: the only modules of the runtime that call AWS. They translate values and errors and make no decisions."""
