"""The commands of a stage: what each asks, starts and prints, in which order, and its refusals."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.aws import Aws, pack
from tools.cli import app
from tools.deployment import commands, service, status
from tools.deployment.stage import DeploymentError
from tools.key_table import KeyRecord, KeyTable

OLDER, NEWER = Path("older.zip"), Path("newer.zip")

DEPLOY = """\
production: account 123456789012, eu-central-1, as arn:aws:iam::123456789012:eve
$ SAM_CLI_TELEMETRY=0 gh attestation verify newer.zip --repo octo/animals
    --signer-workflow octo/animals/.github/workflows/deploy.yml --source-ref
    refs/heads/main --source-digest newer --deny-self-hosted-runners
sleep 5
$ git merge-base --is-ancestor newer origin/main
$ git merge-base --is-ancestor older newer
s3:PutObject bucket releases/newer-#1.zip CRC32
cloudformation:SetStackPolicy animal-store-production {"Statement": [{"Effect": "Allow",
    "Principal": "*", "Action": "Update:*", "Resource": "*"}, {"Effect": "Deny",
    "Principal": "*", "Action": ["Update:Replace", "Update:Delete"], "Resource":
    ["LogicalResourceId/AnimalsTable", "LogicalResourceId/ApiKeysTable"]}]}
cloudformation:UpdateTerminationProtection animal-store-production True
$ SAM_CLI_TELEMETRY=0 sam package --template-file deployed.json --output-template-file
    packaged.yaml --s3-bucket bucket --s3-prefix code --force-upload --no-progressbar
$ SAM_CLI_TELEMETRY=0 sam deploy --template-file packaged.yaml --config-file
    samconfig.toml --config-env production --s3-bucket bucket --role-arn
    arn:aws:iam::123456789012:role/execution --no-progressbar --parameter-overrides
    AlarmEmail="a@b.c" Canary="false" MemorySize="1024"
    PermissionsBoundary="arn:aws:iam::123456789012:policy/boundary"
    ReservedConcurrency="0" Stage="production"
cloudformation:SetStackPolicy animal-store-production {"Statement": [{"Effect": "Allow",
    "Principal": "*", "Action": "Update:*", "Resource": "*"}, {"Effect": "Deny",
    "Principal": "*", "Action": ["Update:Replace", "Update:Delete"], "Resource":
    ["LogicalResourceId/AnimalsTable", "LogicalResourceId/ApiKeysTable"]}]}
cloudformation:UpdateTerminationProtection animal-store-production True
cloudformation:ListStackResources animal-store-production
cloudformation:ListStackResources animal-store-production
cloudformation:ListStackResources animal-store-production
cloudformation:ListStackResources animal-store-production
lambda:GetFunction list-pets live
lambda:GetFunction list-pets
lambda:GetAlias list-pets live
lambda:GetLayerVersionByArn arn:aws:lambda:eu-central-1:123456789012:layer:common:7
dynamodb:PutItem keys #2 check 1 TIME TIME arn:aws:iam::123456789012:eve
    attribute_not_exists(#hash) hash
::add-mask::#3
dynamodb:PutItem keys #4 check 2 TIME TIME arn:aws:iam::123456789012:eve
    attribute_not_exists(#hash) hash
::add-mask::#5
$ env -i CONTRACT_API_KEY=#3 CONTRACT_BASE_URL=https://a/v1
    CONTRACT_EXPECTED_FAILURES=tests/contract/expected_failures/aws.yaml
    CONTRACT_SECOND_API_KEY=#5 PATH=/usr/bin:/bin PYTHONPATH=clients PYTHONUTF8=1 pytest
    tests/contract -p no:cacheprovider -r fE -m smoke_read_only
dynamodb:UpdateItem keys #4 SET revoked = if_not_exists(revoked, :now), revokedBy =
    if_not_exists(revokedBy, :who) attribute_exists(#hash) hash TIME
    arn:aws:iam::123456789012:eve ALL_NEW
dynamodb:UpdateItem keys #2 SET revoked = if_not_exists(revoked, :now), revokedBy =
    if_not_exists(revokedBy, :who) attribute_exists(#hash) hash TIME
    arn:aws:iam::123456789012:eve ALL_NEW
s3:PutObject bucket passed/newer-#1
production runs newer-#1: https://a/v1
"""


def test_a_deployment_takes_these_steps(
    production: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("PYTHONPATH", "clients")
    production.stack["StackStatus"] = "UPDATE_IN_PROGRESS"
    production.stack["Parameters"] |= {"AlarmEmail": "a@b.c", "DomainName": "x"}

    commands.deploy(production.stage, NEWER, attested="octo/animals", canary=False)

    assert production.session() == DEPLOY
    lives = {
        int(key["expires"]["N"]) - int(key["created"]["N"])
        for key in production.keys.values()
    }
    assert lives == {86_400}


ROLLBACK = """\
production: account 123456789012, eu-central-1, as arn:aws:iam::123456789012:eve
s3:ListObjectsV2 bucket passed/
s3:HeadObject bucket releases/older-#1.zip
s3:GetObject bucket releases/older-#1.zip
$ SAM_CLI_TELEMETRY=0 gh attestation verify older-#1.zip --repo octo/animals
    --signer-workflow octo/animals/.github/workflows/deploy.yml --source-ref
    refs/heads/main --source-digest older --deny-self-hosted-runners
$ git merge-base --is-ancestor older origin/main
cloudformation:CancelUpdateStack animal-store-production
sleep 5
s3:PutObject bucket releases/older-#1.zip CRC32
cloudformation:SetStackPolicy animal-store-production {"Statement": [{"Effect": "Allow",
    "Principal": "*", "Action": "Update:*", "Resource": "*"}, {"Effect": "Deny",
    "Principal": "*", "Action": ["Update:Replace", "Update:Delete"], "Resource":
    ["LogicalResourceId/AnimalsTable", "LogicalResourceId/ApiKeysTable"]}]}
cloudformation:UpdateTerminationProtection animal-store-production True
$ SAM_CLI_TELEMETRY=0 sam package --template-file deployed.json --output-template-file
    packaged.yaml --s3-bucket bucket --s3-prefix code --force-upload --no-progressbar
$ SAM_CLI_TELEMETRY=0 sam deploy --template-file packaged.yaml --config-file
    samconfig.toml --config-env production --s3-bucket bucket --role-arn
    arn:aws:iam::123456789012:role/execution --no-progressbar --parameter-overrides
    AlarmEmail="b@b.c" Canary="false" MemorySize="1024"
    PermissionsBoundary="arn:aws:iam::123456789012:policy/boundary"
    ReservedConcurrency="0" Stage="production"
cloudformation:SetStackPolicy animal-store-production {"Statement": [{"Effect": "Allow",
    "Principal": "*", "Action": "Update:*", "Resource": "*"}, {"Effect": "Deny",
    "Principal": "*", "Action": ["Update:Replace", "Update:Delete"], "Resource":
    ["LogicalResourceId/AnimalsTable", "LogicalResourceId/ApiKeysTable"]}]}
cloudformation:UpdateTerminationProtection animal-store-production True
cloudformation:ListStackResources animal-store-production
cloudformation:ListStackResources animal-store-production
cloudformation:ListStackResources animal-store-production
cloudformation:ListStackResources animal-store-production
lambda:GetFunction list-pets live
lambda:GetFunction list-pets
lambda:GetAlias list-pets live
lambda:GetLayerVersionByArn arn:aws:lambda:eu-central-1:123456789012:layer:common:7
dynamodb:PutItem keys #2 check 1 TIME TIME arn:aws:iam::123456789012:eve
    attribute_not_exists(#hash) hash
dynamodb:PutItem keys #3 check 2 TIME TIME arn:aws:iam::123456789012:eve
    attribute_not_exists(#hash) hash
$ env -i CONTRACT_API_KEY=#4 CONTRACT_BASE_URL=https://a/v1
    CONTRACT_EXPECTED_FAILURES=tests/contract/expected_failures/aws.yaml
    CONTRACT_SECOND_API_KEY=#5 PATH=/usr/bin:/bin PYTHONPATH= PYTHONUTF8=1 pytest
    tests/contract -p no:cacheprovider -r fE -m smoke_read_only
dynamodb:UpdateItem keys #3 SET revoked = if_not_exists(revoked, :now), revokedBy =
    if_not_exists(revokedBy, :who) attribute_exists(#hash) hash TIME
    arn:aws:iam::123456789012:eve ALL_NEW
dynamodb:UpdateItem keys #2 SET revoked = if_not_exists(revoked, :now), revokedBy =
    if_not_exists(revokedBy, :who) attribute_exists(#hash) hash TIME
    arn:aws:iam::123456789012:eve ALL_NEW
s3:PutObject bucket passed/older-#1
production runs older-#1: https://a/v1
"""


def test_a_rollback_takes_these_steps(
    production: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.deploy(production.stage, NEWER, canary=False)
    monkeypatch.setenv("ALARM_EMAIL", "b@b.c")
    production.stack["StackStatus"] = "UPDATE_IN_PROGRESS"
    production.session()

    commands.rollback(production.stage, "older", attested="octo/animals")

    assert production.session() == ROLLBACK


PLAN = """\
production: account 123456789012, eu-central-1, as arn:aws:iam::123456789012:eve
$ SAM_CLI_TELEMETRY=0 sam package --template-file deployed.json --output-template-file
    packaged.yaml --s3-bucket bucket --s3-prefix code --force-upload --no-progressbar
$ SAM_CLI_TELEMETRY=0 sam deploy --template-file packaged.yaml --config-file
    samconfig.toml --config-env production --s3-bucket bucket --role-arn
    arn:aws:iam::123456789012:role/execution --no-progressbar --no-execute-changeset
    --parameter-overrides AlarmEmail="" Canary="true" MemorySize="1024"
    PermissionsBoundary="arn:aws:iam::123456789012:policy/boundary"
    ReservedConcurrency="0" Stage="production"
cloudformation:DescribeChangeSet animal-store-production
    arn:aws:cloudformation:1:changeSet/2
cloudformation:DeleteChangeSet animal-store-production
    arn:aws:cloudformation:1:changeSet/2
Created: arn:aws:cloudformation:1:changeSet/2 .
AnimalsTable would be replaced or deleted, which the stack policy refuses.
ApiKeysTable would be replaced or deleted, which the stack policy refuses.
"""


def test_a_plan_names_tables_that_would_be_replaced_and_leaves_nothing(
    production: Aws,
) -> None:
    production.results["sam deploy"] = (
        0,
        "Created: arn:aws:cloudformation:1:changeSet/2 .",
    )
    changes = [
        {"LogicalResourceId": name, "Action": action, "Replacement": replacement}
        for name, action, replacement in (
            ("AnimalsTable", "Modify", "False"),
            ("AnimalsTable", "Modify", "Conditional"),
            ("ApiKeysTable", "Remove", "False"),
            ("ListPetsFunction", "Modify", "True"),
        )
    ]
    production.answers["cloudformation:DescribeChangeSet"] = {
        "Changes": [{"ResourceChange": change} for change in changes]
    }

    commands.deploy(production.stage, NEWER, plan=True)

    assert production.session() == PLAN


STATUS = """\
production: account 123456789012, eu-central-1, as arn:aws:iam::123456789012:eve
s3:ListObjectsV2 bucket passed/
cloudformation:ListStackResources animal-store-production
cloudformation:ListStackResources animal-store-production
cloudwatch:DescribeAlarms gone of-ErrorsAlarm of-HeartbeatAlarm of-MutedAlarm
    of-FloodAlarm MetricAlarm CompositeAlarm
animal-store-production is UPDATE_COMPLETE
runs newer-#1 since 2027-01-30T12:00:00+00:00; it has passed its check
ran older-#2, which passed its check on 2027-01-30 01:00:
  make rollback STAGE=production COMMIT=older
GoneAlarm was deleted
ErrorsAlarm is ALARM since 2027-01-31 02:30: because of ErrorsAlarm
HeartbeatAlarm is OK since 2027-01-31 02:30: because of HeartbeatAlarm
MutedAlarm is OK (muted) since 2027-01-31 02:30: because of MutedAlarm
1 other alarms are OK
2 API keys are valid; those that expire first:
  2030-03-17 bbbbbbbbbbbb bob\\x1b
"""
ALARMS = [
    ("ErrorsAlarm", "ALARM", True),
    ("HeartbeatAlarm", "OK", True),
    ("MutedAlarm", "OK", False),
    ("FloodAlarm", "OK", True),
]


def test_status_is_this_page(production: Aws) -> None:
    commands.deploy(production.stage, NEWER, canary=False)
    production.stack["Outputs"]["Deployed"] = "2027-01-30T12:00:00+00:00"
    production.resources.append(["GoneAlarm", "gone", "AWS::CloudWatch::Alarm"])
    alarms = []
    for name, state, told in ALARMS:
        kind = "CompositeAlarm" if name == "FloodAlarm" else "Alarm"
        production.resources.append([name, f"of-{name}", f"AWS::CloudWatch::{kind}"])
        alarms.append(
            {
                "AlarmName": f"of-{name}",
                "ActionsEnabled": told,
                "StateReason": f"because of {name}",
                "StateUpdatedTimestamp": datetime(2027, 1, 31, 2, 30, tzinfo=UTC),
                "StateValue": state,
            }
        )
    *metrics, composite = alarms
    production.answers["cloudwatch:DescribeAlarms"] = {
        "CompositeAlarms": [composite],
        "MetricAlarms": metrics,
    }
    production.keys.clear()
    table = KeyTable(production.stage.client("dynamodb"), "keys")
    table.put(KeyRecord("a" * 64, "ann", created=1))
    table.put(KeyRecord("b" * 64, "bob\x1b", 1, expires=1_900_000_000))
    production.session()

    status.status(production.stage)

    assert production.session() == STATUS
    production.stack["Outputs"]["Artifact"] = "beside-1a2b"
    status.status(production.stage)
    page = production.session()
    assert "it has not passed a check\nran newer-" in page
    assert "COMMIT=newer\n" in page


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
    pack("unknown")
    pack("newer-dirty")
    return production


ATTESTED = {"attested": "octo/animals"}
OFF_MAIN = "production takes commits of main only"


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("deploy", {"artifact": NEWER, "sha256": "0" * 64}, "not have the SHA-256 0"),
        ("deploy", {"artifact": NEWER} | ATTESTED, "no attestation"),
        ("deploy", {"artifact": NEWER, "plan": True} | ATTESTED, "no attestation"),
        ("rollback", {"commit": "older"} | ATTESTED, "no attestation"),
        ("deploy", {"artifact": Path("beside.zip")}, OFF_MAIN),
        ("deploy", {"artifact": Path("unknown.zip")}, OFF_MAIN),
        ("deploy", {"artifact": Path("newer-dirty.zip")}, OFF_MAIN),
        ("rollback", {"commit": "beside"}, OFF_MAIN),
        ("rollback", {"commit": "newer"}, r"begins with 'newer'; there are:\n.*older"),
        ("rollback", {"commit": ""}, r"begins with ''; .*\n.* older-\w+ \(runs now\)"),
        ("rollback", {"commit": "older-x"}, "not one artifact of production begins"),
        ("rollback", {"commit": "spoilt"}, "is not what its name says"),
    ],
)
def test_what_is_refused_changes_nothing(
    beside: Aws, command: str, options: Any, message: str
) -> None:
    beside.results["gh attestation"] = 1, "no attestation"
    with pytest.raises(DeploymentError, match=message):
        getattr(commands, command)(beside.stage, **options)
    assert beside.changes() == []


@pytest.mark.parametrize("command", ["plan", "check", "status"])
def test_a_stage_without_a_stack_is_named(aws: Aws, command: str) -> None:
    act: Any = {
        "plan": lambda stage: commands.deploy(stage, NEWER, plan=True),
        "check": commands.check,
        "status": status.status,
    }[command]
    with pytest.raises(DeploymentError, match="production has no stack"):
        act(aws.stage)
    assert aws.changes() == []


@pytest.mark.parametrize("length", [8, 63])
def test_a_part_of_the_digest_is_not_enough(aws: Aws, length: int) -> None:
    digest = pack("newer").sha256
    wrong = digest[:length] + "x" + digest[length + 1 :]
    with pytest.raises(DeploymentError, match="does not have the SHA-256"):
        commands.deploy(aws.stage, NEWER, sha256=wrong)
    commands.deploy(aws.stage, NEWER, sha256=digest)


def test_production_goes_back_only_by_a_rollback(aws: Aws) -> None:
    commands.deploy(aws.stage, OLDER)
    commands.deploy(aws.stage, NEWER)
    with pytest.raises(DeploymentError, match="production runs newer, which is newer"):
        commands.deploy(aws.stage, OLDER)
    assert aws.stack["Outputs"]["Artifact"].startswith("newer-")


def test_staging_takes_any_commit_and_is_checked_by_all_cases(aws: Aws) -> None:
    pack("beside")
    aws.stage = replace(aws.stage, name="staging")
    commands.deploy(aws.stage, Path("beside.zip"))
    (suite,) = (line for line in aws.lines if " pytest " in line)
    assert suite.endswith(" pytest tests/contract -p no:cacheprovider -r fE")


@pytest.mark.parametrize(
    ("status", "reason"),
    [(1, "failed"), (2, "ended early, with status 2"), (5, "has no such tests")],
)
def test_what_fails_its_check_is_taken_back(
    production: Aws, status: int, reason: str
) -> None:
    production.results["pytest tests/contract"] = status, ""
    with pytest.raises(DeploymentError) as failed:
        commands.deploy(production.stage, NEWER, canary=False)

    first, last = str(failed.value).splitlines()
    assert first.startswith(f"the contract suite {reason}: ")
    assert last.startswith("production runs older-")
    assert production.stack["Outputs"]["Artifact"].startswith("older-")
    assert production.stack["Parameters"]["Canary"] == "false"
    assert not any(key.startswith("passed/newer") for key in production.objects)


def test_a_first_deployment_and_a_rollback_have_nothing_to_go_back_to(
    aws: Aws,
) -> None:
    aws.results["pytest tests/contract"] = 1, ""
    with pytest.raises(DeploymentError, match=r"to work$"):
        commands.deploy(aws.stage, OLDER)
    assert aws.stack["Outputs"]["Artifact"].startswith("older-")

    aws.results.clear()
    commands.deploy(aws.stage, OLDER)
    commands.deploy(aws.stage, NEWER)
    aws.results["pytest tests/contract"] = 1, ""
    with pytest.raises(DeploymentError, match=r"to work$"):
        commands.rollback(aws.stage, "older")
    assert aws.stack["Outputs"]["Artifact"].startswith("older-")


def test_what_somebody_else_has_deployed_meanwhile_stays(production: Aws) -> None:
    def deploy_another(_: object) -> Any:
        production.stack["Outputs"]["Artifact"] = "another"
        return DeploymentError("the check fails")

    production.answers["lambda:GetAlias"] = deploy_another
    with pytest.raises(DeploymentError, match=r"^the check fails$"):
        commands.deploy(production.stage, NEWER, canary=False)
    assert production.stack["Outputs"]["Artifact"] == "another"


@pytest.mark.parametrize(("canary", "keys"), [(True, 4), (False, 2)])
def test_only_a_canary_gets_requests_while_it_lasts(
    production: Aws, canary: bool, keys: int
) -> None:
    """They need two keys more than the check."""
    production.keys.clear()
    commands.deploy(production.stage, NEWER, canary=canary)
    assert len(production.keys) == keys


def test_a_canary_gets_requests_that_only_read_until_it_has_ended(
    production: Aws,
) -> None:
    production.keys.clear()
    with service.requests_meanwhile(production.stage, pause_s=0.01):
        while str(production.lines).count(" pytest ") < 2:
            time.sleep(0.01)

    for line in production.lines:
        assert " pytest " not in line or line.endswith("-m smoke_read_only")
    assert all("revoked" in key for key in production.keys.values())


def test_two_checks_at_the_same_time_have_valid_keys_of_their_own(
    production: Aws,
) -> None:
    with (
        service.temporary_keys(production.stage) as first,
        service.temporary_keys(production.stage) as second,
    ):
        assert len({*first, *second}) == 4
        keys = [*production.keys.values()][-4:]
        assert not any("revoked" in key for key in keys)


@pytest.mark.parametrize("stage", ["prod", "default", "version", "Staging"])
def test_a_name_that_is_no_stage_is_refused(stage: str) -> None:
    done = CliRunner().invoke(app, ["deploy", stage])
    assert done.exit_code == 2
    assert "staging, production" in done.output
