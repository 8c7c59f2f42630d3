"""Commands for a stage report what is missing before they build or change anything."""

import pytest
from typer.testing import CliRunner

from ops import deploy, programs
from ops.cli import app
from tools import ROOT


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("deploy staging", "animal-store-staging-bootstrap is not deployed"),
        ("keys list --stage staging", "animal-store-staging is not deployed"),
    ],
)
@pytest.mark.usefixtures("account")
def test_stage_that_does_not_exist_is_reported(
    monkeypatch: pytest.MonkeyPatch, command: str, message: str
) -> None:
    monkeypatch.setattr(programs, "SAM", ROOT)
    monkeypatch.delattr(deploy, "build")  # calling it would be an error
    assert str(CliRunner().invoke(app, command).exception) == message


@pytest.mark.parametrize(
    "command", ["deploy staging --allow-older", "bootstrap staging octo/animals"]
)
def test_missing_sam_is_reported(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr(programs, "SAM", ROOT / "no-sam")
    message = "sam is not installed: make .tools/sam/.installed"
    assert str(CliRunner().invoke(app, command).exception) == message
