"""The command line has these commands, and accepts these arguments and options."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from ops.__main__ import main
from ops.cli import app
from tests.support.aws import pack


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("bootstrap staging octo/animals", "No such file or directory: 'gh'"),
        (
            "check-stage staging",
            "animal-store-staging is not deployed in eu-central-1 of the account 123456789012",
        ),
        ("deploy staging zebra.zip --allow-older", "staging-bootstrap is not deployed"),
        ("keys list --stage staging", "animal-store-staging is not deployed"),
        ("rollback staging", "staging-bootstrap is not deployed"),
        ("status staging", "animal-store-staging is not deployed"),
    ],
)
def test_command_says_which_stack_is_missing(
    command: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack("zebra")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert message in str(CliRunner().invoke(app, command).exception)


def test_profile_of_aws_login_leads_to_its_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text("[profile me]\nlogin_session = arn:aws:iam::1:user/me\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "me")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    monkeypatch.setattr("signal.signal", Mock())  # keep this process's handlers
    monkeypatch.setattr("sys.argv", ["animal-store", "status", "staging"])

    with pytest.raises(SystemExit, match="aws configure export-credentials"):
        main()
