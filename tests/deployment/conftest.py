"""An account with a prepared stage, and a history of commits."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto import mock_aws

from tests.support.aws import Aws

# Two commits on main, and one beside it, each with a tag.
HISTORY = """
git init --quiet --initial-branch main
git config user.name x
git config user.email x@example.com
for name in older newer beside; do
  git commit --quiet --allow-empty --message $name
  git tag $name
done
git update-ref refs/remotes/origin/main newer
"""


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the history."""
    repository = tmp_path_factory.mktemp("repository")
    subprocess.run(["sh", "-ec", HISTORY], cwd=repository, check=True)
    return repository


@pytest.fixture
def aws(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    """Make the account, whose stage has no stack yet."""
    for name in ("ALARM_EMAIL", "AWS_PROFILE", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield Aws(repository)
