"""Deploys small tables to a local cloud or to an AWS account, checks what is promised of them, and measures AWS.

`make acceptance` runs it; docs/acceptance.md describes it.
"""
