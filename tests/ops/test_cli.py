"""Commands for a stage report a missing region first and a missing sam next, before they build."""

from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from ops import deploy, programs
from ops.cli import app
from tools import ROOT

NO_REGION = "Set AWS_DEFAULT_REGION to the region of the stage."
NO_SAM = "sam is not installed: make .tools/sam/.installed"


def test_unknown_stage_is_refused() -> None:
    result = CliRunner().invoke(app, "deploy default")
    assert result.exit_code == 2
    assert "samconfig.toml has staging and production" in result.output


@pytest.mark.parametrize(
    ("region", "command", "message"),
    [
        (None, "deploy staging", NO_REGION),
        (None, "keys list --stage staging", NO_REGION),
        ("eu-central-1", "deploy staging artifact.zip --allow-older", NO_SAM),
        ("eu-central-1", "bootstrap staging octo/animals", NO_SAM),
    ],
)
def test_missing_region_or_missing_sam_is_reported_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, region: str | None, command: str, message: str
) -> None:
    monkeypatch.setattr("boto3.Session", lambda: Mock(region_name=region))
    monkeypatch.setattr(programs, "SAM", ROOT / "no-sam")
    monkeypatch.delattr(deploy, "build")  # calling it would be an error
    assert str(CliRunner().invoke(app, command).exception) == message
