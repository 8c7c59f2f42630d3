"""Commands of a stage name what is missing: first the region, then sam; a build comes last."""

from unittest.mock import Mock

import pytest
from typer.testing import CliRunner, Result

from ops import deploy, programs
from ops.cli import app
from tools import ROOT


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Have neither a region nor sam; a build would be an error."""
    session = Mock(region_name=None)
    monkeypatch.setattr("boto3.Session", lambda: session)
    monkeypatch.setattr(programs, "SAM", ROOT / "no-sam")
    monkeypatch.delattr(deploy, "build")
    return session


def run(command: str) -> Result:
    return CliRunner().invoke(app, command)


def test_name_that_is_no_stage_is_refused() -> None:
    result = run("deploy default")
    assert result.exit_code == 2
    assert "samconfig.toml has staging and production" in result.output


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("command", ["deploy staging", "keys list --stage staging"])
def test_missing_region_comes_first(command: str) -> None:
    message = "Set AWS_DEFAULT_REGION to the region of the stage."
    assert str(run(command).exception) == message


@pytest.mark.parametrize(
    "command", ["deploy staging", "bootstrap staging octo/animals"]
)
def test_missing_sam_comes_before_a_build_and_any_call(
    command: str, session: Mock
) -> None:
    session.region_name = "eu-central-1"
    message = "sam is not installed: make .tools/sam/.installed"
    assert str(run(command).exception) == message
