"""The fix for a request to AWS that has no credentials, for the end of a message."""

from __future__ import annotations

_FIX = "; give --profile, set AWS_PROFILE, or sign in with aws sso login or aws configure"


def how_to_sign_in(error: BaseException | None) -> str:
    """Return how to give credentials, if *error* came of an error of botocore that there are none; else nothing.

    The class is known by its name, as to import botocore takes longer than most commands run.
    """
    while error is not None:
        if type(error).__name__ == "NoCredentialsError":
            return _FIX
        error = error.__cause__
    return ""
