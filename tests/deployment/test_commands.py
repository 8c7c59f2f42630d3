"""The commands of a stage: what each asks, starts and prints, in which order, and its refusals."""

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from tests.support.aws import Aws, aws_error, pack
from tools.cli import app
from tools.deployment import commands, service, status
from tools.deployment.stage import DeploymentError
from tools.key_table import KeyRecord

OLDER, NEWER = Path("older.zip"), Path("newer.zip")
ATTESTED: Any = {"attested": "octo/animals"}
HERE = """\
production: account 123456789012, eu-central-1, as arn:aws:iam::123456789012:eve
"""
POLICY = """\
cloudformation:SetStackPolicy animal-store-production {"Statement": [
  {"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"},
  {"Effect": "Deny", "Principal": "*", "Action": ["Update:Replace", "Update:Delete"],
    "Resource": ["LogicalResourceId/AnimalsTable", "LogicalResourceId/ApiKeysTable"]}
]}
cloudformation:UpdateTerminationProtection animal-store-production True
"""
VERIFY = """\
$ SAM_CLI_TELEMETRY=0 gh attestation verify ARTIFACT.zip --repo octo/animals \
--signer-workflow octo/animals/.github/workflows/deploy.yml --source-ref \
refs/heads/main --source-digest COMMIT --deny-self-hosted-runners
"""
PACKAGE = """\
$ SAM_CLI_TELEMETRY=0 sam package --template-file deployed.json --output-template-file \
packaged.yaml --s3-bucket bucket --s3-prefix code --force-upload --no-progressbar
"""
INSTALL = f"""\
s3:PutObject bucket releases/COMMIT-#1.zip
{POLICY}{PACKAGE}\
$ SAM_CLI_TELEMETRY=0 sam deploy --template-file packaged.yaml --config-file \
samconfig.toml --config-env production --s3-bucket bucket --role-arn role/execution \
--no-progressbar --parameter-overrides AlarmEmail="a@b.c" Canary="false" \
CertificateArn="arn:1" MemorySize="1024" PermissionsBoundary="policy/boundary" \
ReservedConcurrency="0" Stage="production"
{POLICY}"""
CHECK = """\
cloudformation:ListStackResources animal-store-production
lambda:GetFunction list-pets live
lambda:GetFunction list-pets
lambda:GetAlias list-pets live
lambda:GetLayerVersionByArn arn:aws:lambda:eu-central-1:123456789012:layer:common:7
dynamodb:Scan animal-store-local-ApiKeysTable True
dynamodb:PutItem animal-store-local-ApiKeysTable attribute_not_exists(label)
::add-mask::#2
$ env -i CONTRACT_API_KEY=#2 CONTRACT_BASE_URL=https://a/v1 \
CONTRACT_EXPECTED_FAILURES=tests/contract/expected_failures/aws.yaml \
PATH=/usr/bin:/bin PYTHONUTF8=1 pytest \
tests/contract -p no:cacheprovider -r fE -m smoke_read_only
"""
PASSED = """\
s3:PutObject bucket passed/COMMIT-#1
COMMIT-#1 has passed on production: https://a/v1
"""
DEPLOY = f"""\
{HERE}{VERIFY}\
sleep 5
$ git merge-base --is-ancestor newer origin/main
$ git merge-base --is-ancestor older newer
{INSTALL}{CHECK}{PASSED}"""
ROLLBACK = f"""\
{HERE}\
s3:ListObjectsV2 bucket passed/
s3:ListObjectsV2 bucket passed/ 1
s3:GetObject bucket releases/older-#1.zip
{VERIFY}\
$ git merge-base --is-ancestor older origin/main
cloudformation:CancelUpdateStack animal-store-production
sleep 5
{INSTALL}{CHECK}{PASSED}"""
LAPSED = f"""\
{HERE}\
s3:ListObjectsV2 bucket releases/
s3:GetObject bucket releases/older-#1.zip
dynamodb:DescribeTable animal-store-local-AnimalsTable
dynamodb:DescribeContinuousBackups animal-store-local-AnimalsTable
dynamodb:DescribeTable animal-store-local-ApiKeysTable
dynamodb:DescribeContinuousBackups animal-store-local-ApiKeysTable
dynamodb:DescribeTimeToLive animal-store-local-AnimalsTable
dynamodb:Query animal-store-local-AnimalsTable pk = :partition #attribute \
SPECIFIC_ATTRIBUTES False 1 True
dynamodb:Query animal-store-local-AnimalsTable pk = :partition #attribute \
SPECIFIC_ATTRIBUTES False 1 True
dynamodb:Scan animal-store-local-ApiKeysTable True
animal-store-production: EnableTerminationProtection is False, not True
{CHECK}"""
PLAN = f"""\
{HERE}{PACKAGE}\
$ SAM_CLI_TELEMETRY=0 sam deploy --template-file packaged.yaml --config-file \
samconfig.toml --config-env production --s3-bucket bucket --role-arn role/execution \
--no-progressbar --no-execute-changeset --parameter-overrides AlarmEmail="" \
Canary="true" CertificateArn="" MemorySize="1024" PermissionsBoundary="policy/boundary" \
ReservedConcurrency="0" Stage="production"
cloudformation:DescribeChangeSet animal-store-production \
arn:aws:cloudformation:1:changeSet/2
cloudformation:DeleteChangeSet animal-store-production \
arn:aws:cloudformation:1:changeSet/2
Created: arn:aws:cloudformation:1:changeSet/2 .
AnimalsTable would be replaced or deleted, which the stack policy refuses.
AnimalsTable would be replaced or deleted, which the stack policy refuses.
"""
CHANGES = """
Changes:
  - ResourceChange: {LogicalResourceId: AnimalsTable, Action: Modify, Replacement: Conditional}
  - ResourceChange: {LogicalResourceId: AnimalsTable, Action: Remove}
  - ResourceChange: {LogicalResourceId: ApiKeysTable, Action: Modify, Replacement: "False"}
  - ResourceChange: {LogicalResourceId: ApiKeysTable, Action: Add}
  - ResourceChange: {LogicalResourceId: Other, Action: Modify, Replacement: "True"}
"""


@pytest.fixture
def workflow(production: Aws, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """Act as a job of GitHub's does."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    return production


def test_a_deployment_takes_these_steps(workflow: Aws) -> None:
    workflow.stack["StackStatus"] = "UPDATE_ROLLBACK_IN_PROGRESS"
    workflow.stack["Parameters"] |= {"AlarmEmail": "a@b.c", "CertificateArn": "arn:1"}
    workflow.stack["Parameters"] |= {"DomainName": "x", "ReservedConcurrency": "5"}

    commands.deploy(workflow.stage, NEWER, **ATTESTED, canary=False)

    steps = DEPLOY.replace("ARTIFACT", "newer").replace("COMMIT", "newer")
    assert workflow.session() == steps
    last = workflow.keys.all()[-1]
    assert last.expires == last.created + 3_600


def test_a_rollback_takes_these_steps(
    workflow: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.deploy(workflow.stage, NEWER, canary=False)
    workflow.stack["Parameters"]["AlarmEmail"] = "old@b.c"
    monkeypatch.setenv("ALARM_EMAIL", "a@b.c")
    workflow.stack["Parameters"]["CertificateArn"] = "arn:1"
    workflow.stack["StackStatus"] = "UPDATE_IN_PROGRESS"
    workflow.session()

    commands.rollback(workflow.stage, "older", **ATTESTED)

    steps = ROLLBACK.replace("ARTIFACT", "older-#1").replace("COMMIT", "older")
    assert workflow.session() == steps


def test_a_check_takes_these_steps_and_fails_after_the_suite_for_a_lapse(
    workflow: Aws,
) -> None:
    workflow.stack["EnableTerminationProtection"] = False
    with pytest.raises(DeploymentError, match="1 things of production have lapsed"):
        commands.check(workflow.stage)
    assert workflow.session() == LAPSED


def test_a_plan_names_tables_that_would_be_replaced_and_leaves_nothing(
    production: Aws,
) -> None:
    printed = "Created: arn:aws:cloudformation:1:changeSet/2 ."
    production.results["sam deploy"] = 0, printed
    production.answers["cloudformation:DescribeChangeSet"] = yaml.safe_load(CHANGES)

    commands.deploy(production.stage, NEWER, plan=True)

    assert production.session() == PLAN


STATUS = f"""\
{HERE}\
s3:ListObjectsV2 bucket passed/
s3:ListObjectsV2 bucket passed/ 1
cloudformation:ListStackResources animal-store-production
cloudwatch:DescribeAlarms
dynamodb:Scan animal-store-local-ApiKeysTable True
animal-store-production is UPDATE_COMPLETE
runs newer-#1 since 2027-01-30; it has passed its check
ran older-#2, which passed its check on 2027-01-30 02:00:
  make rollback STAGE=production COMMIT=older
GoneAlarm was deleted
ErrorsAlarm is ALARM since 2027-01-31 02:30: because
HeartbeatAlarm is OK since 2027-01-31 02:30: because
MutedAlarm is OK (muted) since 2027-01-31 02:30: because
of 5 alarms, the others are OK
API key bbbbbbbbbbbb (bob\\x1b) expires on 2096-10-02
"""
ALARMS = """
- &gone
  LogicalResourceId: GoneAlarm
  PhysicalResourceId: gone
  ResourceType: AWS::CloudWatch::Alarm
- {<<: *gone, LogicalResourceId: ErrorsAlarm, PhysicalResourceId: errors}
- {<<: *gone, LogicalResourceId: HeartbeatAlarm, PhysicalResourceId: heartbeat}
- {<<: *gone, LogicalResourceId: MutedAlarm, PhysicalResourceId: muted}
- LogicalResourceId: FloodAlarm
  PhysicalResourceId: flood
  ResourceType: AWS::CloudWatch::CompositeAlarm
"""
STATES = """
MetricAlarms:
  - &errors
    AlarmName: errors
    ActionsEnabled: true
    StateReason: because
    StateUpdatedTimestamp: 2027-01-31T02:30:00Z
    StateValue: ALARM
  - {<<: *errors, AlarmName: heartbeat, StateValue: OK}
  - {<<: *errors, AlarmName: muted, StateValue: OK, ActionsEnabled: false}
CompositeAlarms:
  - {<<: *errors, AlarmName: flood, StateValue: OK}
"""


def test_status_is_this_page(production: Aws) -> None:
    commands.deploy(production.stage, NEWER, canary=False)
    production.stack["Outputs"]["Deployed"] = "2027-01-30"
    resources = production.answers["cloudformation:ListStackResources"]
    resources["StackResourceSummaries"] += yaml.safe_load(ALARMS)
    states = yaml.safe_load(STATES)
    production.answers["cloudwatch:DescribeAlarms"] = lambda asked: {
        f"{kind}s": states[f"{kind}s"]
        for kind in asked.get("AlarmTypes", ["MetricAlarm"])
    }
    production.keys.put(KeyRecord("b" * 64, "bob\x1b", 1, expires=4_000_000_000))
    production.session()

    status.status(production.stage)

    assert production.session() == STATUS
    production.stack["Outputs"]["Artifact"] = "beside-1a2b"
    status.status(production.stage)
    assert "has not passed a check\nran newer-" in production.session()


@pytest.fixture
def beside(production: Aws) -> Aws:
    """Keep what is not on main, what was changed in the bucket, and what has not passed."""
    artifact, digest = pack("beside"), pack("newer").sha256
    almost = f"{digest[:32]}x{digest[33:]}"
    production.objects |= {
        f"releases/{artifact.name}.zip": artifact.path.read_bytes(),
        f"passed/{artifact.name}": b"",
        "releases/newer-1a2b.zip": NEWER.read_bytes(),
        f"releases/spoilt-{almost}.zip": NEWER.read_bytes(),
        f"passed/spoilt-{almost}": b"",
    }
    pack("oldest")
    return production


OFF_MAIN = "production takes commits of main only"


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("deploy", {"artifact": NEWER} | ATTESTED, "no attestation"),
        ("deploy", {"artifact": NEWER, "plan": True} | ATTESTED, "no attestation"),
        ("rollback", {"commit": "older"} | ATTESTED, "no attestation"),
        ("deploy", {"artifact": Path("beside.zip")}, OFF_MAIN),
        ("rollback", {"commit": "beside"}, OFF_MAIN),
        ("deploy", {"artifact": Path("oldest.zip")}, "production runs older, which is"),
        ("rollback", {"commit": "newer"}, r"begins with 'newer'; there are:\n.*older"),
        ("rollback", {"commit": ""}, r"begins with ''; .*\n2027-01-30 02:00 older-"),
        ("rollback", {"commit": "older-x"}, "not one artifact of production begins"),
        ("rollback", {"commit": "spoilt"}, "is not what its name says"),
        ("deploy", {}, "failed: .*python.* -m tools build arm64"),
    ],
)
def test_what_is_refused_changes_nothing(
    beside: Aws, command: str, options: Any, message: str
) -> None:
    beside.results = {"gh attestation": (1, "no attestation"), "tools build": (1, "")}
    with pytest.raises(DeploymentError, match=message):
        getattr(commands, command)(beside.stage, **options)
    assert not beside.changed()


@pytest.mark.parametrize(
    "command",
    [
        partial(commands.deploy, artifact=NEWER, plan=True),
        commands.check,
        status.status,
    ],
)
def test_a_stage_without_a_stack_is_named(aws: Aws, command: Any) -> None:
    with pytest.raises(DeploymentError, match="production has no stack"):
        command(aws.stage)
    assert not aws.changed()


def test_an_account_that_is_not_prepared_is_refused_before_a_build(aws: Aws) -> None:
    aws.account = {}
    with pytest.raises(DeploymentError, match="make bootstrap STAGE=production"):
        commands.deploy(aws.stage)
    assert aws.session() == HERE


def test_a_part_of_the_digest_is_not_enough(aws: Aws) -> None:
    digest = pack("newer").sha256
    with pytest.raises(DeploymentError, match="does not have the SHA-256"):
        commands.deploy(aws.stage, NEWER, sha256=f"{digest[:-1]}x")
    commands.deploy(aws.stage, NEWER, sha256=digest)


def test_staging_takes_any_commit_and_is_checked_by_all_cases(aws: Aws) -> None:
    pack("beside")
    commands.deploy(replace(aws.stage, name="staging"), Path("beside.zip"))
    (suite,) = (line for line in aws.lines if " pytest " in line)
    assert suite.endswith(" pytest tests/contract -p no:cacheprovider -r fE")


@pytest.mark.parametrize("status", [1, 2, 3, 4, 5, -9])
def test_what_fails_its_check_is_taken_back(production: Aws, status: int) -> None:
    production.results["pytest tests/contract"] = status, ""
    with pytest.raises(DeploymentError) as failed:
        commands.deploy(production.stage, NEWER, canary=False)

    first, last = str(failed.value).splitlines()
    assert first.startswith(f"the contract suite ended with status {status} ")
    assert last.startswith("production runs older-")
    assert production.stack["Outputs"]["Artifact"].startswith("older-")
    assert production.stack["Parameters"]["Canary"] == "false"
    assert not any(key.startswith("passed/newer") for key in production.objects)


def test_what_cannot_be_checked_is_taken_back(production: Aws) -> None:
    production.answers["lambda:GetAlias"] = aws_error("Throttling", "Rate exceeded")
    message = r"Rate exceeded.*\nproduction runs older-"
    with pytest.raises(DeploymentError, match=message):
        commands.deploy(production.stage, NEWER, canary=False)


def test_an_interruption_says_what_goes_on_and_what_follows_is_taken_back(
    production: Aws,
) -> None:
    def interrupt(_: object) -> Any:
        raise KeyboardInterrupt

    production.answers["lambda:GetAlias"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        commands.deploy(production.stage, NEWER, canary=False)
    assert (
        "If CloudFormation was changing the stack, it continues" in production.session()
    )
    production.answers["lambda:GetAlias"] = {}
    production.results["pytest tests/contract"] = 1, ""
    with pytest.raises(DeploymentError, match="production runs older-"):
        commands.deploy(production.stage, NEWER, canary=False)


def test_what_an_interrupted_rollback_left_is_not_taken_back(production: Aws) -> None:
    commands.deploy(production.stage, NEWER, canary=False)
    production.answers["lambda:GetAlias"] = aws_error("Throttling", "Rate exceeded")
    with pytest.raises(ClientError, match="Rate exceeded"):
        commands.rollback(production.stage, "older")
    with pytest.raises(DeploymentError, match="production runs older-"):
        commands.deploy(production.stage, pack("newest").path, canary=False)


def test_a_first_deployment_has_nothing_to_go_back_to(aws: Aws) -> None:
    aws.results["pytest tests/contract"] = 1, ""
    with pytest.raises(DeploymentError, match=r"to work$"):
        commands.deploy(aws.stage, OLDER)
    assert aws.stack["Outputs"]["Artifact"].startswith("older-")


def test_a_rollback_does_not_go_back_to_what_it_left(production: Aws) -> None:
    commands.deploy(production.stage, NEWER)
    production.results["pytest tests/contract"] = 1, ""
    with pytest.raises(DeploymentError, match=r"to work$"):
        commands.rollback(production.stage, "older")
    assert production.stack["Outputs"]["Artifact"].startswith("older-")


def test_what_somebody_else_has_deployed_meanwhile_stays(production: Aws) -> None:
    def deploy_another(_: object) -> Any:
        production.stack["Outputs"]["Artifact"] = "another"
        return {"RoutingConfig": {"AdditionalVersionWeights": {"2": 0.1}}}

    production.answers["lambda:GetAlias"] = deploy_another
    with pytest.raises(DeploymentError, match="does not run what was asked for:\nList"):
        commands.deploy(production.stage, NEWER, canary=False)
    assert production.stack["Outputs"]["Artifact"] == "another"


def test_a_canary_gets_requests_while_it_lasts(production: Aws) -> None:
    """They need a key more than the check."""
    before = len(production.keys.all())
    commands.deploy(production.stage, NEWER)
    assert len(production.keys.all()) == before + 2


def test_a_canary_gets_requests_that_only_read_until_it_has_ended(
    production: Aws,
) -> None:
    with (
        suppress(KeyError),
        service.requests_meanwhile(production.stage, pause_s=0.01),
    ):
        while str(production.lines).count(" pytest ") < 2:
            time.sleep(0.01)
        raise KeyError  # the installation fails

    for line in production.lines:
        if " pytest " in line:
            assert "CONTRACT_API_KEY=animal_test_" in line
            assert line.endswith(" -qq --tb=no --no-summary -m smoke_read_only")


def test_two_checks_at_the_same_time_have_keys_of_their_own(
    production: Aws,
) -> None:
    with (
        service.temporary_key(production.stage) as first,
        service.temporary_key(production.stage) as second,
    ):
        assert first != second


@pytest.mark.parametrize("stage", ["prod", "default", "version", "Staging"])
def test_a_name_that_is_no_stage_is_refused(stage: str) -> None:
    done = CliRunner().invoke(app, ["deploy", stage])
    assert done.exit_code == 2
    assert "'staging', 'production'" in done.output
