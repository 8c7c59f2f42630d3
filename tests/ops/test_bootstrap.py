"""Who may assume the roles of ops/bootstrap.yaml, and how `bootstrap` creates its stack."""

from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from ops import bootstrap, programs
from ops.stage import StageError
from tests.support.aws import Account
from tools import ROOT
from tools.local.template import properties_by_name, read_stack

EXPECTED_TRUST = yaml.safe_load(Path(__file__).with_name("trust.yaml").read_text())


def test_roles_trust_the_expected_principals() -> None:
    stack = read_stack(
        "ops/bootstrap.yaml", Stage="production", CreateOidcProvider="false"
    )
    trust_by_role = {}
    for name, role in properties_by_name(stack, "AWS::IAM::Role").items():
        # ExecutionRole can change only roles named role/animal-store-production-*, without a path.
        assert role["Path"] == "/animal-store-bootstrap/"
        [statement] = role["AssumeRolePolicyDocument"]["Statement"]
        trust_by_role[name] = [statement["Principal"], statement.get("Condition")]
    assert trust_by_role == EXPECTED_TRUST


# GitHub's responses for a repository whose environment `production` has a reviewer.
GITHUB_RESPONSES = {
    "repos/octo/animals": '{"id": 7, "name": "animals", "owner": {"id": 5, "login": "octo"}}',
    "repos/octo/animals/environments/production": '{"type": "required_reviewers"}',
}


@pytest.fixture
def sam(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Replace GitHub by its responses, and sam by a program that changes nothing and succeeds."""
    monkeypatch.setattr(bootstrap, "ask_github", GITHUB_RESPONSES.get)
    sam = Mock(return_value=Mock(wait=lambda: 0))
    monkeypatch.setattr(programs, "sam", sam)
    return sam


def test_sam_gets_names_and_ids_of_the_repository(
    account: Account, sam: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap.bootstrap(account.stage, "octo/animals", ["CreateOidcProvider=false"])
    sam.assert_called_once_with(
        "deploy",
        "--template-file=ops/bootstrap.yaml",
        "--stack-name=animal-store-production-bootstrap",
        "--capabilities=CAPABILITY_IAM",
        "--no-fail-on-empty-changeset",
        "--parameter-overrides",
        "Stage=production",
        "Owner=octo",
        "OwnerId=5",
        "Repository=animals",
        "RepositoryId=7",
        "CreateOidcProvider=false",
        folder=ROOT,
    )
    assert "ArtifactBucketName artifacts\n" in capsys.readouterr().out


def test_production_without_reviewer_is_refused(
    account: Account, sam: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = "repos/octo/animals/environments/production"
    monkeypatch.setitem(GITHUB_RESPONSES, environment, '{"protection_rules": []}')
    with pytest.raises(StageError, match="required reviewer"):
        bootstrap.bootstrap(account.stage, "octo/animals", [])
    sam.assert_not_called()


def test_failure_reports_the_stacks_state(account: Account, sam: Mock) -> None:
    sam.return_value.wait = lambda: 1
    with pytest.raises(StageError, match="bootstrap is CREATE_COMPLETE"):
        bootstrap.bootstrap(account.stage, "octo/animals", [])
