"""The command line passes the stage's name and the options to the commands."""

import pytest
from typer.testing import CliRunner

from ops.cli import app
from tests.support.aws import pack


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("deploy staging zebra.zip --allow-older", "staging-bootstrap is not deployed"),
        ("keys list --stage staging", "animal-store-staging is not deployed"),
    ],
)
def test_command_for_a_stage_that_is_not_deployed_says_so(
    command: str, message: str
) -> None:
    pack("zebra")
    assert message in str(CliRunner().invoke(app, command).exception)
