"""What a deployment asks of sam and CloudFormation, and what it says when they refuse."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.aws import TEMPLATE, Aws, aws_error, pack
from tools.deployment import bootstrap, release
from tools.deployment.stage import DeploymentError
from tools.packaging.artifact import Artifact

CHANGE_SET = "arn:aws:cloudformation:eu-central-1:123456789012:changeSet/samcli/1"


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    """Pack what was built from a commit."""
    return pack(tmp_path / "it.zip", "newer")


@pytest.fixture
def reserving(tmp_path: Path) -> Artifact:
    """Pack what reserves 300 executions for its one function."""
    parameter = "ReservedConcurrency: {Default: "
    template = TEMPLATE.replace(f"{parameter}0", f"{parameter}300")
    return pack(tmp_path / "reserving.zip", "newer", template)


def limit(free: int) -> Any:
    """Answer how much concurrency is unreserved, of which Lambda keeps 100."""
    numbers = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": free}
    return {"AccountLimit": numbers}


def test_sam_packages_and_deploys_as_the_execution_role(
    aws: Aws, artifact: Artifact
) -> None:
    release.install(aws.stage, artifact, canary=True)

    assert aws.named("sam") == [
        [
            "package",
            "--template-file",
            "deployed.json",
            "--output-template-file",
            "packaged.yaml",
            "--s3-bucket",
            "bucket",
            "--s3-prefix",
            "code",
            "--force-upload",
            "--no-progressbar",
        ],
        [
            "deploy",
            "--template-file",
            "packaged.yaml",
            "--config-file",
            "samconfig.toml",
            "--config-env",
            "production",
            "--s3-bucket",
            "bucket",
            "--role-arn",
            "arn:aws:iam::123456789012:role/execution",
            "--no-progressbar",
            "--parameter-overrides",
            'AlarmEmail=""',
            'Canary="true"',
            'MemorySize="1024"',
            'PermissionsBoundary="arn:aws:iam::123456789012:policy/boundary"',
            'ReservedConcurrency="0"',
            'Stage="production"',
        ],
    ]
    assert aws.environments["sam deploy"]["SAM_CLI_TELEMETRY"] == "0"


def test_a_stack_is_protected_before_and_after_it_is_updated(
    aws: Aws, artifact: Artifact
) -> None:
    release.install(aws.stage, artifact, canary=True)
    release.install(aws.stage, artifact, canary=True)

    names = [
        name for name, _ in aws.calls if name.startswith(("cloudformation:U", "sam d"))
    ]
    protected = "cloudformation:UpdateTerminationProtection"
    assert names == ["sam deploy", protected, protected, "sam deploy", protected]
    stack = "animal-store-production"
    assert aws.named(protected)[0] == {
        "StackName": stack,
        "EnableTerminationProtection": True,
    }
    policies = aws.named("cloudformation:SetStackPolicy")
    assert [each["StackName"] for each in policies] == 3 * [stack]
    assert json.loads(policies[0]["StackPolicyBody"])["Statement"] == [
        {"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"},
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": ["Update:Replace", "Update:Delete"],
            "Resource": [
                "LogicalResourceId/AnimalsTable",
                "LogicalResourceId/ApiKeysTable",
            ],
        },
    ]


def test_parameters_are_the_artifacts_but_for_those_of_the_account(
    aws: Aws, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = {"AlarmEmail": "a@example.com", "DomainName": "x", "MemorySize": "512"}
    aws.stack = {"Parameters": used}
    expected = {
        "AlarmEmail": "a@example.com",
        "Canary": "true",
        "MemorySize": "1024",
        "PermissionsBoundary": "arn:aws:iam::123456789012:policy/boundary",
        "ReservedConcurrency": "0",
        "Stage": "production",
    }
    assert aws.stage.parameters(artifact.folder) == expected

    monkeypatch.setenv("ALARM_EMAIL", "b@example.com")
    asked = aws.stage.parameters(artifact.folder)
    assert asked == expected | {"AlarmEmail": "b@example.com"}


def test_two_deployments_of_one_artifact_publish_different_versions(
    aws: Aws, artifact: Artifact
) -> None:
    release.install(aws.stage, artifact, canary=True)
    first = aws.live["Environment"]["Variables"].pop("DEPLOYMENT")
    assert aws.stack["Outputs"]["Deployed"] == first

    release.install(aws.stage, artifact, canary=True)
    assert aws.live["Environment"]["Variables"].pop("DEPLOYMENT") != first


def test_a_change_set_that_fails_says_why(aws: Aws, artifact: Artifact) -> None:
    now = datetime.now(UTC)
    aws.results["sam deploy"] = 1, "Failed to create changeset"
    aws.answers["cloudformation:DescribeEvents"] = {
        "OperationEvents": [
            {"LogicalResourceId": "Api", "ResourceStatusReason": "b", "Timestamp": now},
            {"EventType": "STACK_EVENT", "Timestamp": now},
            {
                "LogicalResourceId": "Topic",
                "ValidationStatusReason": "it exists",
                "ValidationPath": "/Resources/Topic",
                "Timestamp": now,
            },
            {
                "ResourceStatusReason": "of another day",
                "Timestamp": now - timedelta(days=1),
            },
        ]
    }

    with pytest.raises(DeploymentError) as failed:
        release.install(aws.stage, artifact, canary=True)

    lines = str(failed.value).splitlines()
    assert lines[0] == "Failed to create changeset"
    assert lines[-2:] == ["Topic: it exists, /Resources/Topic", "Api: b"]
    assert aws.named("cloudformation:DescribeEvents") == [
        {"StackName": "animal-store-production", "Filters": {"FailedEvents": True}}
    ]


def test_reasons_that_cannot_be_read_do_not_hide_the_failure(
    aws: Aws, artifact: Artifact
) -> None:
    aws.results["sam deploy"] = 1, "Failed to create changeset"
    aws.answers["cloudformation:DescribeEvents"] = aws_error("AccessDenied", "no right")

    with pytest.raises(DeploymentError, match=r"(?s)changeset.*reasons.*no right"):
        release.install(aws.stage, artifact, canary=True)


@pytest.mark.parametrize(("free", "used"), [(400, 0), (250, 150), (0, 300)])
def test_a_stage_reserves_what_lambda_leaves(
    aws: Aws, reserving: Artifact, free: int, used: int
) -> None:
    aws.stack = {"Parameters": {"ReservedConcurrency": str(used)}}
    aws.answers["lambda:GetAccountSettings"] = limit(free)
    release.install(aws.stage, reserving, canary=True)
    assert len(aws.named("sam deploy")) == 1


@pytest.mark.parametrize(("free", "used"), [(399, 0), (249, 150), (10, 0)])
def test_a_stage_that_would_reserve_more_is_refused(
    aws: Aws, reserving: Artifact, free: int, used: int
) -> None:
    aws.stack = {"Parameters": {"ReservedConcurrency": str(used)}}
    aws.answers["lambda:GetAccountSettings"] = limit(free)
    with pytest.raises(DeploymentError, match="1 functions are to reserve"):
        release.install(aws.stage, reserving, canary=True)
    assert aws.named("sam", "s3:PutObject") == []


def test_a_plan_names_tables_that_would_be_replaced_and_leaves_nothing(
    aws: Aws, artifact: Artifact
) -> None:
    release.install(aws.stage, artifact, canary=True)
    aws.calls.clear()
    aws.results["sam deploy"] = 0, f"Changeset created: {CHANGE_SET} ."
    changes = [
        {
            "LogicalResourceId": "AnimalsTable",
            "Action": "Modify",
            "Replacement": "Conditional",
        },
        {"LogicalResourceId": "ApiKeysTable", "Action": "Remove"},
        {
            "LogicalResourceId": "ListPetsFunction",
            "Action": "Modify",
            "Replacement": "True",
        },
    ]
    aws.answers["cloudformation:DescribeChangeSet"] = {
        "Changes": [{"ResourceChange": change} for change in changes]
    }
    aws.answers["cloudformation:DeleteChangeSet"] = {}

    planned = release.plan(aws.stage, artifact)

    assert planned.splitlines()[1:] == [
        "AnimalsTable would be replaced or deleted, which the stack policy refuses.",
        "ApiKeysTable would be replaced or deleted, which the stack policy refuses.",
    ]
    assert "--no-execute-changeset" in aws.named("sam deploy")[0]
    change_set = {"StackName": "animal-store-production", "ChangeSetName": CHANGE_SET}
    assert aws.named("cloudformation:DescribeChangeSet") == [change_set]
    assert aws.named("cloudformation:DeleteChangeSet") == [change_set]


def test_a_plan_leaves_a_table_that_only_changes_alone(
    aws: Aws, artifact: Artifact
) -> None:
    release.install(aws.stage, artifact, canary=True)
    aws.results["sam deploy"] = 0, CHANGE_SET
    change = {
        "LogicalResourceId": "AnimalsTable",
        "Action": "Modify",
        "Replacement": "False",
    }
    aws.answers["cloudformation:DescribeChangeSet"] = {
        "Changes": [{"ResourceChange": change}]
    }
    aws.answers["cloudformation:DeleteChangeSet"] = {}

    assert release.plan(aws.stage, artifact) == CHANGE_SET


def test_a_plan_makes_no_stack(aws: Aws, artifact: Artifact) -> None:
    with pytest.raises(DeploymentError, match="production has no stack"):
        release.plan(aws.stage, artifact)
    assert aws.named("sam") == []


def test_only_a_missing_stack_means_that_nothing_runs(aws: Aws) -> None:
    assert (aws.stage.status(), aws.stage.outputs()) == ("", {})

    aws.answers["cloudformation:DescribeStacks"] = aws_error(
        "Throttling", "Rate exceeded"
    )
    with pytest.raises(Exception, match="Rate exceeded"):
        aws.stage.status()


def test_an_account_that_is_not_prepared_is_named(aws: Aws) -> None:
    nothing = aws_error("ValidationError", "Stack with id x does not exist")
    aws.answers["cloudformation:DescribeStacks"] = nothing
    with pytest.raises(DeploymentError, match="make bootstrap STAGE=production"):
        aws.stage.account()


@pytest.mark.parametrize("status", ["", "UPDATE_COMPLETE", "REVIEW_IN_PROGRESS"])
def test_a_stack_at_rest_is_not_waited_for(aws: Aws, status: str) -> None:
    aws.stack = {"StackStatus": status} if status else {}
    aws.stage.wait()
    assert aws.named("sleep") == []


LOGGING = ["CreateApiGatewayLoggingRole=true"]


def test_the_role_with_which_other_apis_write_logs_is_not_replaced(aws: Aws) -> None:
    theirs = {"cloudwatchRoleArn": "arn:aws:iam::123456789012:role/theirs"}
    aws.answers["apigateway:GetAccount"] = theirs

    with pytest.raises(DeploymentError, match="role/theirs, for every API"):
        bootstrap.create(aws.stage, LOGGING)
    assert aws.named("sam") == []
    bootstrap.create(aws.stage, [])


@pytest.mark.parametrize("account", [{}, {"StackStatus": "CREATE_COMPLETE"}])
def test_a_missing_role_for_logs_is_made(aws: Aws, account: dict[str, str]) -> None:
    aws.account = account
    aws.answers["apigateway:GetAccount"] = {}
    bootstrap.create(aws.stage, LOGGING)
    assert aws.named("sam deploy")[0][-2:] == ["Stage=production", *LOGGING]


def test_our_own_role_for_logs_stays(aws: Aws) -> None:
    arn = "arn:aws:iam::123456789012:role/animal-store-bootstrap/ours"
    aws.answers["apigateway:GetAccount"] = {"cloudwatchRoleArn": arn}
    aws.resources["ApiGatewayLoggingRole"] = "AWS::IAM::Role", "ours"
    bootstrap.create(aws.stage, LOGGING)
    stack = "animal-store-production-bootstrap"
    assert aws.named("cloudformation:List") == [{"StackName": stack}]
    assert len(aws.named("sam deploy")) == 1
