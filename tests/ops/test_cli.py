"""Commands of a stage name what is missing: first the region, then sam; a build comes last."""

import io
import sys
from pathlib import Path
from unittest import mock

import pytest
from typer.testing import CliRunner, Result

from ops import deploy, programs
from ops.__main__ import main
from ops.cli import app


@pytest.fixture(autouse=True)
def no_aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have neither a region nor sam; a build would be an error."""
    for name in ("AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setattr(programs, "SAM", tmp_path / "sam")
    monkeypatch.delattr(deploy, "build")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_lines_are_printed_at_once_even_into_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", pipe)
    with mock.patch("signal.signal"), mock.patch("ops.cli.app"):
        main()
    assert pipe.line_buffering


@pytest.mark.parametrize("name", ["default", "prod"])
def test_name_that_is_no_stage_is_refused(name: str) -> None:
    result = run("deploy", name)
    assert result.exit_code == 2
    assert "samconfig.toml has staging and production" in result.output


@pytest.mark.parametrize("command", ["deploy staging", "keys list --stage staging"])
def test_missing_region_comes_first(command: str) -> None:
    assert str(run(*command.split()).exception) == (
        "Set AWS_DEFAULT_REGION to the region of the stage."
    )


@pytest.mark.parametrize(
    "command", ["deploy staging", "bootstrap staging octo/animals"]
)
def test_missing_sam_comes_before_a_build_and_any_call(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert str(run(*command.split()).exception) == (
        "sam is not installed: make .tools/sam/.installed"
    )
