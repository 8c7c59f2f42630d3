"""Who may become a role of ops/bootstrap.yaml, what it keeps safe, and what it asks of GitHub."""

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from ops import bootstrap, programs
from ops.stage import DeploymentError
from tests.support.aws import Account
from tests.support.stack import decided, properties_by_name
from tools import ROOT

# Other parameters than the stage stand for themselves.
STACK = decided("ops/bootstrap.yaml", Stage="production")
TRUST = yaml.safe_load(Path(__file__).with_name("trust.yaml").read_text())


def test_only_these_can_assume_the_roles_and_no_role_can_change_them() -> None:
    trusted = {}
    for name, role in properties_by_name(STACK, "AWS::IAM::Role").items():
        # By its path: ExecutionRole may change role/animal-store-production-* alone.
        assert role["Path"] == "/animal-store-bootstrap/"
        [statement] = role["AssumeRolePolicyDocument"]["Statement"]
        trusted[name] = [statement["Principal"], statement.get("Condition")]
    assert trusted == TRUST


def test_roles_trust_a_provider_that_the_account_has_already() -> None:
    stack = decided(
        "ops/bootstrap.yaml", Stage="production", CreateOidcProvider="false"
    )
    role = properties_by_name(stack, "AWS::IAM::Role")["DeployRole"]
    assert role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {
        "Federated": "arn:AWS::Partition:iam::AWS::AccountId:oidc-provider/"
        "token.actions.githubusercontent.com"
    }


def test_artifacts_never_expire_and_each_version_is_kept_for_a_year() -> None:
    [bucket] = properties_by_name(STACK, "AWS::S3::Bucket").values()
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert bucket["LifecycleConfiguration"]["Rules"] == [
        {
            "Id": "overwritten",
            "Status": "Enabled",
            "NoncurrentVersionExpiration": {"NoncurrentDays": 365},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
        }
    ]
    assert [*bucket["PublicAccessBlockConfiguration"].values()] == [True] * 4


def test_tables_are_copied_daily_to_a_locked_vault_and_can_be_restored() -> None:
    [vault] = properties_by_name(STACK, "AWS::Backup::BackupVault").values()
    assert vault["LockConfiguration"] == {"MinRetentionDays": 35}
    [plan] = properties_by_name(STACK, "AWS::Backup::BackupPlan").values()
    [rule] = plan["BackupPlan"]["BackupPlanRule"]
    assert rule["ScheduleExpression"] == "cron(0 3 * * ? *)"
    # With fewer, the vault would take no copy.
    assert rule["Lifecycle"] == {"DeleteAfterDays": 35}
    [selection] = properties_by_name(STACK, "AWS::Backup::BackupSelection").values()
    arn = "arn:AWS::Partition:dynamodb:AWS::Region:AWS::AccountId"
    assert selection["BackupSelection"]["Resources"] == [
        f"{arn}:table/animal-store-production-*"
    ]
    role = properties_by_name(STACK, "AWS::IAM::Role")["BackupRole"]
    prefix = "arn:AWS::Partition:iam::aws:policy/service-role/AWSBackupServiceRole"
    assert role["ManagedPolicyArns"] == [
        f"{prefix}PolicyForBackup",
        f"{prefix}PolicyForRestores",
    ]


@pytest.fixture
def sam(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Let sam change nothing and succeed; production has a reviewer on GitHub."""
    github = {
        "repos/octo/animals/environments/production": {
            "protection_rules": [{"type": "required_reviewers"}]
        },
        "repos/octo/animals": {
            "id": 7,
            "name": "animals",
            "owner": {"id": 5, "login": "octo"},
        },
    }
    monkeypatch.setattr(bootstrap, "ask_github", lambda path: json.dumps(github[path]))
    sam = Mock()
    sam.return_value.wait.return_value = 0
    monkeypatch.setattr(programs, "sam", sam)
    return sam


def test_account_is_prepared_for_a_repository_by_its_numbers(
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


def test_production_without_a_reviewer_is_refused(
    account: Account, sam: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = '{"protection_rules": []}'
    monkeypatch.setattr(bootstrap, "ask_github", lambda _: environment)
    with pytest.raises(DeploymentError, match="required reviewer"):
        bootstrap.bootstrap(account.stage, "octo/animals", [])
    sam.assert_not_called()


def test_failed_bootstrap_names_the_state_of_its_stack(
    account: Account, sam: Mock
) -> None:
    sam.return_value.wait.return_value = 1
    with pytest.raises(DeploymentError) as error:
        bootstrap.bootstrap(account.stage, "octo/animals", [])
    assert str(error.value) == (
        "sam deploy failed: animal-store-production-bootstrap is CREATE_COMPLETE"
    )
