"""An account with a prepared stage, in an empty folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto import mock_aws

from tests.support.account import Account
from tests.support.aws import Aws


@pytest.fixture
def aws(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Aws:
    monkeypatch.chdir(tmp_path)
    return Aws(lambda: "".join(capsys.readouterr()))


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """Make an account whose stage is not deployed yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ALARM_EMAIL", "me@example.com")
    with mock_aws():
        yield Account()
