"""Deploys the examples to a local cloud or to an AWS account, checks what they promise, and measures AWS.

`make acceptance` runs it; docs/acceptance.md describes it.
"""
