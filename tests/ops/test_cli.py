"""The command line has these commands, and accepts these arguments and options."""

from unittest.mock import patch

import pytest
from botocore.exceptions import MissingDependencyException
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


def test_profile_of_aws_login_leads_to_its_credentials() -> None:
    with (
        patch("ops.cli.app", side_effect=MissingDependencyException(msg="install it")),
        patch("signal.signal"),  # so that this process keeps its own handlers
        pytest.raises(SystemExit, match=r"install it\n.*\n.*export-credentials"),
    ):
        main()
