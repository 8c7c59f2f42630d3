"""The command line has these commands, and accepts these arguments and options."""

import pytest
from typer.testing import CliRunner

from ops.cli import app
from tests.support.aws import pack

NO_STAGE = "animal-store-staging is not deployed"
NO_ACCOUNT = "animal-store-staging-bootstrap is not deployed"


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("bootstrap staging octo/animals", "No such file or directory: 'gh'"),
        ("check-stage staging", NO_STAGE),
        ("deploy staging zebra.zip --allow-older", NO_ACCOUNT),
        ("keys list --stage staging", NO_STAGE),
        ("rollback staging", NO_ACCOUNT),
        ("status staging", NO_STAGE),
    ],
)
def test_command_for_a_stage_that_is_not_deployed_says_what_is_missing(
    command: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack("zebra")
    monkeypatch.setenv("PATH", "")
    assert message in str(CliRunner().invoke(app, command).exception)
