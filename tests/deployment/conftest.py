"""An account with a prepared stage, in an empty folder."""

from pathlib import Path

import pytest

from tests.support.aws import Aws, pack
from tools.deployment import commands


@pytest.fixture
def aws(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Aws:
    """Make the account, whose stage has no stack yet, and the artifacts of two commits of main."""
    monkeypatch.chdir(tmp_path)
    for name in ("ALARM_EMAIL", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    pack("older")
    pack("newer")
    return Aws(lambda: "".join(capsys.readouterr()))


@pytest.fixture
def production(aws: Aws) -> Aws:
    """Let the stage run `older`; record what is asked from now on."""
    commands.deploy(aws.stage, Path("older.zip"))
    aws.session()
    return aws
