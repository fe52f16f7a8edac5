"""Highwater's runtime: provisioned capacity for DynamoDB, declared and kept."""
