"""The command line accepts commands for a stage, with arguments and options."""

import pytest
from typer.testing import CliRunner

from ops.cli import app
from tests.support.aws import pack


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("command", "message"),
    [
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
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert message in str(CliRunner().invoke(app, command).exception)
