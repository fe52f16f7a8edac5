"""Which profiles the suite refuses before it asks AWS anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptance.place import AccountError, open_account

DEVICE = "arn:aws:iam::123456789012:mfa/me"
CONFIG = f"""
[profile asks]
role_arn = arn:aws:iam::123456789012:role/Tester
source_profile = base
mfa_serial = {DEVICE}
[profile above]
role_arn = arn:aws:iam::123456789012:role/Other
source_profile = asks
[profile base]
region = eu-west-1
"""


@pytest.mark.parametrize("profile", ["asks", "above"])
def test_profile_that_asks_for_a_code_is_refused(profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(CONFIG)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(AccountError) as refused:
        open_account(profile, "123456789012", "eu-west-1")
    assert str(refused.value) == (
        f"profile '{profile}' asks for a code of {DEVICE}, which nobody gives during a run; make a profile of the "
        "credentials that aws sts assume-role or get-session-token prints, and name that one"
    )
