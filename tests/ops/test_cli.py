"""The command line has these commands, and accepts these arguments and options."""

import pytest
from typer.testing import CliRunner

from ops.cli import app


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("bootstrap staging octo/animals", "No such file or directory: 'gh'"),
        ("check-stage staging", "animal-store-staging is not deployed"),
        ("deploy staging zebra.zip --allow-older", "staging-bootstrap is not deployed"),
        ("keys list --stage staging", "animal-store-staging is not deployed"),
        ("rollback staging", "staging-bootstrap is not deployed"),
        ("status staging", "animal-store-staging is not deployed"),
    ],
)
def test_command_for_a_stage_that_is_not_deployed_says_what_is_missing(
    command: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert message in str(CliRunner().invoke(app, command).exception)
