"""The faults of `tests.aws.bench`, for tests/cli, which imports them from here."""

from tests.aws.bench import Call, at, refusal

__all__ = ["Call", "at", "refusal"]
