"""What a check of a stage finds: a hand on the console, and what lapses without one."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.aws import Aws, pack
from tests.support.stack import load
from tools.deployment import check_stage, commands, release
from tools.deployment.stage import DeploymentError
from tools.key_table import KeyRecord, KeyTable
from tools.packaging.artifact import Artifact

DAY_S = 86_400


@pytest.fixture
def artifact(aws: Aws, tmp_path: Path) -> Artifact:
    """Let the stage run what was built from a commit."""
    artifact = pack(tmp_path / "it.zip", "newer")
    release.install(aws.stage, artifact, canary=True)
    return artifact


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"Architectures": ["x86_64"]}, "architectures is ['x86_64'], not ['arm64']"),
        ({"CodeSha256": "qg=="}, "code is aa, not "),
        ({"Handler": "app.main"}, "handler is app.main, not app.handler"),
        ({"Layers": []}, "layers is {}, not "),
        ({"LoggingConfig": {"ApplicationLogLevel": "ERROR"}}, "logging is "),
        ({"LoggingConfig": {"LogGroup": "another"}}, "logging is "),
        ({"MemorySize": 128}, "memory is 128, not 1024"),
        (
            {"Role": "admin"},
            "role is admin, not arn:aws:iam::123456789012:role/role-of",
        ),
        ({"Runtime": "python3.12"}, "runtime is python3.12, not python3.13"),
        ({"Timeout": 900}, "timeout is 900, not 10"),
        ({"TracingConfig": {"Mode": "PassThrough"}}, "tracing is PassThrough, not "),
        ({"Environment": {"Variables": {"ANIMALS_TABLE": "mine"}}}, "variables is "),
    ],
)
def test_what_live_is_not_as_asked_for_is_named(
    aws: Aws, artifact: Artifact, changed: dict[str, Any], message: str
) -> None:
    """Although $LATEST has the same, where a hand on the console changes it first."""
    check_stage.check(aws.stage, artifact)

    for name, value in changed.items():
        found = aws.live[name]
        aws.live[name] = found | value if isinstance(found, dict) else value

    with pytest.raises(DeploymentError) as refused:
        check_stage.check(aws.stage, artifact)
    heading, line = str(refused.value).splitlines()
    assert heading == "production does not run what was asked for:"
    assert line.startswith(f"ListPetsFunction: {message}")


def test_a_version_of_another_deployment_is_named(aws: Aws, artifact: Artifact) -> None:
    """The alias may have been moved back by hand."""
    aws.live["Environment"]["Variables"]["DEPLOYMENT"] = "yesterday"
    with pytest.raises(DeploymentError, match=r"variables is .*yesterday"):
        check_stage.check(aws.stage, artifact)


@pytest.mark.parametrize(
    ("operation", "answer", "message"),
    [
        (
            "GetLayerVersionByArn",
            {"Content": {"CodeSha256": "uw=="}},
            "layers is {'arn:aws:lambda:eu-central-1:123456789012:layer:common:7': 'bb'}",
        ),
        (
            "GetAlias",
            {"RoutingConfig": {"AdditionalVersionWeights": {"2": 0.1}}},
            "shares of other versions is {'2': 0.1}, not {}",
        ),
    ],
)
def test_another_layer_or_version_behind_live_is_named(
    aws: Aws, artifact: Artifact, operation: str, answer: Any, message: str
) -> None:
    aws.answers[f"lambda:{operation}"] = answer
    with pytest.raises(DeploymentError) as refused:
        check_stage.check(aws.stage, artifact)
    assert message in str(refused.value)


def test_a_function_that_was_stopped_by_hand_is_named(
    aws: Aws, artifact: Artifact
) -> None:
    stopped = {"ReservedConcurrentExecutions": 0}
    aws.answers["lambda:GetFunction"] = lambda _: {
        "Configuration": aws.live,
        "Concurrency": stopped,
    }
    with pytest.raises(DeploymentError, match="reserved concurrency is 0, not None"):
        check_stage.check(aws.stage, artifact)


def test_a_changed_parameter_is_named(aws: Aws, artifact: Artifact) -> None:
    aws.stack["Parameters"] |= {"MemorySize": "128", "Canary": "false"}
    with pytest.raises(DeploymentError) as refused:
        check_stage.check(aws.stage, artifact)
    assert "parameter MemorySize is 128, not 1024" in str(refused.value).splitlines()
    assert "Canary" not in str(refused.value)


def test_what_the_service_needs_can_be_told_from_its_template(
    aws: Aws, tmp_path: Path
) -> None:
    """Each name is known to which a setting of its functions refers."""
    template = load("template.yaml")
    aws.stack = {"StackStatus": "CREATE_COMPLETE"}
    for name, resource in template["Resources"].items():
        aws.resources[name] = resource["Type"], f"production-{name}"
    artifact = pack(tmp_path / "own.zip", "newer", yaml.safe_dump(template))

    settings = check_stage.expected(aws.stage, artifact)

    assert settings.keys() == {
        "CreatePetFunction",
        "GetPetFunction",
        "ListPetsFunction",
    }
    found = settings["CreatePetFunction"]
    assert found["variables"]["ANIMALS_TABLE"] == "production-AnimalsTable"
    assert found["logging"]["LogGroup"] == "production-CreatePetLogGroup"
    assert found["role"].endswith(":role/production-CreatePetRole")


@pytest.fixture
def kept(aws: Aws, artifact: Artifact) -> Aws:
    """Let the stage be as it should be."""
    del artifact
    dynamodb = aws.stage.client("dynamodb")
    for table in ("animals", "keys"):
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=True)
        dynamodb.update_continuous_backups(
            TableName=table,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )
    expiry = {"Enabled": True, "AttributeName": "expires"}
    dynamodb.update_time_to_live(TableName="animals", TimeToLiveSpecification=expiry)
    put(aws, {"pk": {"S": "pet"}, "id": {"N": "9"}})
    put(aws, {"pk": {"S": "pet"}, "id": {"N": "10"}})
    put(aws, {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": "10"}})
    aws.stack["Parameters"]["AlarmEmail"] = "a@example.com"
    subscribe(aws, "PendingConfirmation", "arn:aws:sns:eu-central-1:1:topic:2")
    return aws


def put(aws: Aws, item: dict[str, Any]) -> None:
    """Write an item."""
    aws.stage.client("dynamodb").put_item(TableName="animals", Item=item)


def subscribe(aws: Aws, *arns: str) -> None:
    """Let the topic of the alarms have these subscriptions."""
    subscriptions = [{"SubscriptionArn": arn} for arn in arns]
    aws.answers["sns:ListSubscriptionsByTopic"] = {"Subscriptions": subscriptions}


def test_a_stage_that_is_kept_has_no_lapses(kept: Aws) -> None:
    assert list(check_stage.lapses(kept.stage)) == []
    assert kept.named("sns") == [{"TopicArn": "topic"}]


def test_a_stage_that_anybody_can_delete_is_named(kept: Aws) -> None:
    kept.stack["EnableTerminationProtection"] = False
    (lapse,) = check_stage.lapses(kept.stage)
    assert lapse.startswith("animal-store-production can be deleted")


def test_only_a_confirmed_address_hears_alarms(kept: Aws) -> None:
    subscribe(kept, "PendingConfirmation", "Deleted")
    (lapse,) = check_stage.lapses(kept.stage)
    assert lapse.startswith("alarms reach nobody")

    kept.stack["Parameters"]["AlarmEmail"] = ""  # as staging may have it
    assert list(check_stage.lapses(kept.stage)) == []


@pytest.mark.parametrize("table", ["animals", "keys"])
def test_a_table_without_protection_or_backups_is_named(kept: Aws, table: str) -> None:
    dynamodb = kept.stage.client("dynamodb")
    dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
    (lapse,) = check_stage.lapses(kept.stage)
    assert lapse.startswith(f"{table} can be deleted")

    dynamodb.update_table(TableName=table, DeletionProtectionEnabled=True)
    disabled = {"PointInTimeRecoveryEnabled": False}
    dynamodb.update_continuous_backups(
        TableName=table, PointInTimeRecoverySpecification=disabled
    )
    (lapse,) = check_stage.lapses(kept.stage)
    assert lapse.startswith(f"{table} has no backups")


@pytest.mark.parametrize(
    "expiry",
    [
        {"TimeToLiveStatus": "DISABLED"},
        {"TimeToLiveStatus": "ENABLED", "AttributeName": "expired"},
    ],
)
def test_records_that_do_not_expire_are_named(kept: Aws, expiry: Any) -> None:
    kept.answers["dynamodb:DescribeTimeToLive"] = {"TimeToLiveDescription": expiry}
    (lapse,) = check_stage.lapses(kept.stage)
    assert lapse.startswith("animals grows")


@pytest.mark.parametrize("counter", [{"value": {"N": "9"}}, {}])
def test_a_counter_below_the_highest_id_is_named(kept: Aws, counter: Any) -> None:
    put(kept, {"pk": {"S": "counter"}, "id": {"N": "0"}} | counter)
    (lapse,) = check_stage.lapses(kept.stage)
    assert lapse.startswith("animals would give ids again")
    assert lapse.endswith("below 10")


def test_a_stage_without_animals_has_no_lapses(kept: Aws) -> None:
    for pet in ("9", "10"):
        key = {"pk": {"S": "pet"}, "id": {"N": pet}}
        kept.stage.client("dynamodb").delete_item(TableName="animals", Key=key)
    assert list(check_stage.lapses(kept.stage)) == []


def key(label: str, days: int, life: int = 180, **more: Any) -> KeyRecord:
    """Make a key that expires in some days, of a life of some days."""
    expires = int(time.time()) + days * DAY_S
    return KeyRecord(label, label, expires - life * DAY_S, expires, **more)


@pytest.mark.parametrize(
    ("keys", "labels"),
    [
        ([key("bob", 29)], ["bob"]),
        ([key("bob", 31)], []),
        ([key("bob", -1)], []),
        ([key("bob", 29, revoked=1)], []),
        ([key("check 1", 1, life=1)], []),
        ([KeyRecord("ann", "ann", created=1)], []),
        # A successor has a label of the same holder, and lasts.
        ([key("bob-2026", 29), key("bob-2027", 180)], []),
        ([key("bob", 29), key("bob-2027", 180)], []),
        ([key("bob-2026", 29), key("bob-2027", 180, revoked=1)], ["bob-2026"]),
        ([key("bob-2026", 29), key("bob-2027", 20)], ["bob-2026", "bob-2027"]),
        ([key("bob-2026", 29), key("bobby-2027", 180)], ["bob-2026"]),
        ([key("web-api", 29), key("web-app", 180)], ["web-api"]),
    ],
)
def test_keys_that_expire_within_30_days_need_a_successor(
    keys: list[KeyRecord], labels: list[str]
) -> None:
    assert [each.label for each in check_stage.ending(keys)] == labels


def test_lapses_fail_the_command_after_the_suite_has_run(
    kept: Aws, artifact: Artifact, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.stage.client("s3").upload_file(str(artifact.path), "bucket", "x")
    KeyTable(kept.stage.client("dynamodb"), "keys").put(key("bob", 5))

    with pytest.raises(DeploymentError, match="1 things of production have lapsed"):
        commands.check(kept.stage)

    assert "the key bob (bob) expires on " in capsys.readouterr().out
    assert len(kept.named("pytest")) == 1


def test_a_check_of_what_is_not_deployed_says_so(aws: Aws) -> None:
    with pytest.raises(DeploymentError, match="production has no stack"):
        commands.check(aws.stage)
