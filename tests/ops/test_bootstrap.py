"""Who may become a role of ops/bootstrap.yaml, what it keeps safe, and what it asks of GitHub."""

from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from ops import bootstrap
from ops.stage import DeploymentError
from tests.support.stack import decided, properties_by_name

# Other parameters than the stage stand for themselves.
BOOTSTRAP = decided("ops/bootstrap.yaml", Stage="production")
RESOURCES = BOOTSTRAP["Resources"]

TRUST = yaml.safe_load(Path(__file__).with_name("trust.yaml").read_text())


def test_only_these_become_the_roles_which_no_role_can_change() -> None:
    trusted = {}
    for name, role in properties_by_name(BOOTSTRAP, "AWS::IAM::Role").items():
        # By its path: ExecutionRole may change role/animal-store-production-* alone.
        assert role["Path"] == "/animal-store-bootstrap/"
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        trusted[name] = [statement["Principal"], statement.get("Condition")]
    assert trusted == TRUST


def test_artifacts_are_kept_and_tables_copied_each_day_to_a_locked_vault() -> None:
    bucket = RESOURCES["ArtifactBucket"]["Properties"]
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert "'ExpirationInDays'" not in str(bucket)
    assert [*bucket["PublicAccessBlockConfiguration"].values()] == [True] * 4
    vault = RESOURCES["BackupVault"]["Properties"]
    assert vault["LockConfiguration"] == {"MinRetentionDays": 35}
    # With fewer, the vault would take no copy.
    assert "'DeleteAfterDays': 35" in str(RESOURCES["BackupPlan"])
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


def prepare(environment: str) -> str:
    """Prepare production's account, whose environment GitHub describes; return sam's command."""
    identity = "Owner=octo OwnerId=5 Repository=animals RepositoryId=7"
    stage = Mock(stack="stack", run=Mock(side_effect=[environment, identity, ""]))
    stage.name = "production"
    bootstrap.bootstrap(stage, "octo/animals", ["MonthlyBudget=5"])
    return " ".join(stage.run.call_args.args)


def test_an_account_is_prepared_for_a_repository() -> None:
    assert prepare('{"protection_rules": [{"type": "required_reviewers"}]}').endswith(
        "Stage=production Owner=octo OwnerId=5 Repository=animals RepositoryId=7 MonthlyBudget=5"
    )


def test_a_production_without_a_reviewer_is_refused() -> None:
    with pytest.raises(DeploymentError, match="required reviewer"):
        prepare('{"protection_rules": [{"type": "branch_policy"}]}')
