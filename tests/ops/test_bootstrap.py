"""Who may become a role of ops/bootstrap.yaml, what it keeps safe, and what it asks of GitHub."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from moto import mock_aws

from ops import programs
from ops.bootstrap import bootstrap
from ops.stage import DeploymentError
from tests.support.aws import Account
from tests.support.stack import decided, properties_by_name
from tools import ROOT

# Other parameters than the stage stand for themselves.
BOOTSTRAP = decided("ops/bootstrap.yaml", Stage="production")
RESOURCES = BOOTSTRAP["Resources"]

REPOSITORY = {"id": 7, "name": "animals", "owner": {"id": 5, "login": "octo"}}
REVIEWED = {"protection_rules": [{"type": "required_reviewers"}]}
TRUST = yaml.safe_load(Path(__file__).with_name("trust.yaml").read_text())


def test_only_these_can_assume_the_roles_and_no_role_can_change_them() -> None:
    trusted = {}
    for name, role in properties_by_name(BOOTSTRAP, "AWS::IAM::Role").items():
        # By its path: ExecutionRole may change role/animal-store-production-* alone.
        assert role["Path"] == "/animal-store-bootstrap/"
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        trusted[name] = [statement["Principal"], statement.get("Condition")]
    assert trusted == TRUST


def test_roles_trust_a_provider_that_the_account_has_already() -> None:
    stack = decided(
        "ops/bootstrap.yaml", Stage="production", CreateOidcProvider="false"
    )
    for name in ("CheckRole", "DeployRole"):
        role = stack["Resources"][name]["Properties"]
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {
            "Federated": "arn:AWS::Partition:iam::AWS::AccountId:oidc-provider/"
            "token.actions.githubusercontent.com"
        }


def test_artifacts_never_expire_and_tables_are_copied_daily_to_a_locked_vault() -> None:
    bucket = RESOURCES["ArtifactBucket"]["Properties"]
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert "'ExpirationInDays'" not in str(bucket)
    assert [*bucket["PublicAccessBlockConfiguration"].values()] == [True] * 4
    vault = RESOURCES["BackupVault"]["Properties"]
    assert vault["LockConfiguration"] == {"MinRetentionDays": 35}
    # With fewer, the vault would take no copy.
    (rule,) = RESOURCES["BackupPlan"]["Properties"]["BackupPlan"]["BackupPlanRule"]
    assert rule["Lifecycle"] == {"DeleteAfterDays": 35}
    assert rule["StartWindowMinutes"] == 60
    selection = RESOURCES["BackupSelection"]["Properties"]["BackupSelection"]
    assert selection["Resources"][0].endswith(":table/animal-store-production-*")


def test_backup_role_can_copy_and_restore_tables() -> None:
    prefix = (
        "arn:AWS::Partition:iam::aws:policy/service-role/AWSBackupServiceRolePolicy"
    )
    assert RESOURCES["BackupRole"]["Properties"]["ManagedPolicyArns"] == [
        f"{prefix}ForBackup",
        f"{prefix}ForRestores",
    ]


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """Make an account that is prepared already; GitHub knows a repository and its environment."""
    responses = {
        "repos/octo/animals": REPOSITORY,
        "repos/octo/animals/environments/production": REVIEWED,
    }
    with mock_aws():
        account = Account(monkeypatch)
        monkeypatch.setattr(programs, "gh", lambda _, path: json.dumps(responses[path]))

        def sam(*arguments: str, folder: Path) -> bool:
            assert folder == ROOT
            account.calls.append([*arguments])
            return account.sam_succeeds

        monkeypatch.setattr(programs, "sam", sam)
        yield account


def test_account_is_prepared_for_a_repository_by_its_numbers(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap(account.stage, "octo/animals", ["CreateOidcProvider=false"])
    assert account.calls == [
        [
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
        ]
    ]
    assert "ArtifactBucketName artifacts\n" in capsys.readouterr().out


def test_production_without_a_reviewer_is_refused(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "gh", lambda *_: '{"protection_rules": []}')
    with pytest.raises(DeploymentError, match="required reviewer"):
        bootstrap(account.stage, "octo/animals", [])
    assert account.calls == []


def test_failed_bootstrap_names_the_state_of_its_stack(account: Account) -> None:
    account.sam_succeeds = False
    account.answers["DescribeStacks"] = {
        "Stacks": [{"StackStatus": "ROLLBACK_COMPLETE"}]
    }
    with pytest.raises(DeploymentError) as refused:
        bootstrap(account.stage, "octo/animals", [])
    stack = "animal-store-production-bootstrap"
    assert str(refused.value) == (
        f"sam deploy failed: {stack} is ROLLBACK_COMPLETE; next: an administrator: "
        f"aws cloudformation delete-stack --stack-name {stack}"
    )
