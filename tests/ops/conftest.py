"""An account prepared for a stage; the tests run in a new folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto import mock_aws

from ops.deploy import deploy
from tests.support.aws import Account, pack


@pytest.fixture
def account(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Account]:
    """Prepare an account for a stage that is not deployed yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ALARM_EMAIL", "me@example.com")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    with mock_aws():
        yield Account(monkeypatch, capsys)


@pytest.fixture
def deployed(account: Account) -> Account:
    """Deploy the commit `zebra`."""
    deploy(account.stage, pack("zebra"))
    account.calls.clear()
    account.printed()
    return account
