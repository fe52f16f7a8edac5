"""Adapters: the only place where the runtime speaks to AWS. They translate, and decide nothing."""
