"""What a check of a stage finds: a hand on the console, and what lapses without one."""

import time
from typing import Any

import pytest
import yaml

from tests.support.aws import Aws, pack
from tests.support.stack import load
from tools.deployment import check_stage, commands
from tools.deployment.stage import DeploymentError
from tools.key_table import KeyRecord, KeyTable

DAY_S = 86_400
LAYER = "arn:aws:lambda:eu-central-1:123456789012:layer:common:7"
LIVE = "lambda:GetFunction/Configuration/"
KEPT = {
    "dynamodb:DescribeTimeToLive": {
        "TimeToLiveDescription": {
            "TimeToLiveStatus": "ENABLED",
            "AttributeName": "expires",
        }
    },
    "lambda:GetAlias": {"RoutingConfig": {"AdditionalVersionWeights": {}}},
    "sns:ListSubscriptionsByTopic": {
        "Subscriptions": [
            {"SubscriptionArn": "PendingConfirmation"},
            {"SubscriptionArn": "arn:aws:sns:eu-central-1:1:topic:2"},
        ]
    },
}


@pytest.fixture
def kept(production: Aws) -> Aws:
    """Let the stage be as it should be."""
    production.stack["Parameters"]["AlarmEmail"] = "a@example.com"
    production.last = {"pet": "10", "counter": "10"}
    production.answers |= yaml.safe_load(yaml.safe_dump(KEPT))
    for table in ("animals", "keys"):
        backups = {"PointInTimeRecoveryStatus": "ENABLED"}
        production.answers[f"dynamodb:DescribeTable {table}"] = {
            "Table": {"DeletionProtectionEnabled": True}
        }
        production.answers[f"dynamodb:DescribeContinuousBackups {table}"] = {
            "ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": backups}
        }
    return production


def change(aws: Aws, path: str, value: Any) -> None:
    """Let AWS give another value of what a path names, such as `service:Operation/Name`."""
    found: Any = aws.answers | {"stack": aws.stack, "last": aws.last}
    *folders, name = path.split("/")
    for folder in folders:
        found = found[folder]
    found[name] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (f"{LIVE}Architectures", ["x86_64"], "architectures is ['x86_64'], not ['arm"),
        (f"{LIVE}CodeSha256", "qg==", "code is aa, not "),
        (f"{LIVE}Environment/Variables/DEPLOYMENT", "yesterday", "variables is "),
        (f"{LIVE}Environment/Variables/ANIMALS_TABLE", "mine", "variables is "),
        (f"{LIVE}Handler", "app.main", "handler is app.main, not app.handler"),
        (f"{LIVE}Layers", [], "layers is {}, not "),
        (f"{LIVE}LoggingConfig/ApplicationLogLevel", "ERROR", "logging is "),
        (f"{LIVE}LoggingConfig/LogGroup", "another", "logging is "),
        (f"{LIVE}MemorySize", 128, "memory is 128, not 1024"),
        (f"{LIVE}Role", "admin", "role is admin, not arn:aws:iam::123456789012:role/"),
        (f"{LIVE}Runtime", "python3.12", "runtime is python3.12, not python3.13"),
        (f"{LIVE}Timeout", 900, "timeout is 900, not 10"),
        (f"{LIVE}TracingConfig/Mode", "PassThrough", "tracing is PassThrough, not "),
        (
            "lambda:GetLayerVersionByArn/Content/CodeSha256",
            "uw==",
            f"layers is {{'{LAYER}': 'bb'}}, not ",
        ),
        (
            "lambda:GetAlias/RoutingConfig/AdditionalVersionWeights",
            {"2": 0.1},
            "shares of other versions is {'2': 0.1}, not {}",
        ),
        (
            "lambda:GetFunction/Concurrency",
            {"ReservedConcurrentExecutions": 0},
            "reserved concurrency is 0, not None",
        ),
        ("stack/Parameters/MemorySize", "128", "parameter MemorySize is 128, not 1024"),
    ],
)
def test_what_is_not_as_asked_for_is_named(
    kept: Aws, path: str, value: Any, message: str
) -> None:
    artifact = pack("older")
    change(kept, "stack/Parameters/Canary", "false")
    check_stage.check(kept.stage, artifact)

    change(kept, path, value)

    with pytest.raises(DeploymentError) as refused:
        check_stage.check(kept.stage, artifact)
    heading, line = str(refused.value).splitlines()
    assert heading == "production does not run what was asked for:"
    assert line.removeprefix("ListPetsFunction: ").startswith(message)


CHECK = """\
production: account 123456789012, eu-central-1, as arn:aws:iam::123456789012:eve
s3:ListObjectsV2 bucket releases/
s3:HeadObject bucket releases/older-#1.zip
s3:GetObject bucket releases/older-#1.zip
cloudformation:ListStackResources animal-store-production
sns:ListSubscriptionsByTopic topic
dynamodb:DescribeTable animals
dynamodb:DescribeContinuousBackups animals
dynamodb:DescribeTable keys
dynamodb:DescribeContinuousBackups keys
dynamodb:DescribeTimeToLive animals
dynamodb:Query animals pk = :partition pet #attribute id SPECIFIC_ATTRIBUTES False 1
    True
dynamodb:Query animals pk = :partition counter #attribute value SPECIFIC_ATTRIBUTES
    False 1 True
animal-store-production can be deleted: termination protection is off
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
"""


def test_a_check_takes_these_steps_and_fails_after_the_suite_for_a_lapse(
    kept: Aws,
) -> None:
    kept.stack["EnableTerminationProtection"] = False
    with pytest.raises(DeploymentError, match="1 things of production have lapsed"):
        commands.check(kept.stage)
    assert kept.session() == CHECK


def test_what_the_service_needs_can_be_told_from_its_template(aws: Aws) -> None:
    """Each name is known to which a setting of its functions refers."""
    template = load("template.yaml")
    aws.stack = {"StackStatus": "CREATE_COMPLETE"}
    for name, resource in template["Resources"].items():
        aws.resources.append([name, f"production-{name}", resource["Type"]])

    settings = check_stage.expected(aws.stage, pack("newer", yaml.safe_dump(template)))

    found = settings["CreatePetFunction"]
    assert found["variables"]["ANIMALS_TABLE"] == "production-AnimalsTable"
    assert found["logging"]["LogGroup"] == "production-CreatePetLogGroup"
    assert found["role"].endswith(":role/production-CreatePetRole")


BACKUPS = "/ContinuousBackupsDescription/PointInTimeRecoveryDescription"
EXPIRY = "dynamodb:DescribeTimeToLive/TimeToLiveDescription"
UNCONFIRMED = [
    {"SubscriptionArn": "PendingConfirmation"},
    {"SubscriptionArn": "Deleted"},
]


@pytest.mark.parametrize(
    ("path", "value", "lapses"),
    [
        ("last/pet", None, []),
        ("stack/Parameters/AlarmEmail", "", []),
        (
            "stack/EnableTerminationProtection",
            False,
            ["animal-store-production can be deleted: termination protection is off"],
        ),
        (
            "sns:ListSubscriptionsByTopic/Subscriptions",
            UNCONFIRMED,
            ["alarms reach nobody: no subscription to their topic is confirmed"],
        ),
        (
            "dynamodb:DescribeTable animals/Table/DeletionProtectionEnabled",
            False,
            ["animals can be deleted: deletion protection is off"],
        ),
        (
            "dynamodb:DescribeTable keys/Table/DeletionProtectionEnabled",
            False,
            ["keys can be deleted: deletion protection is off"],
        ),
        (
            f"dynamodb:DescribeContinuousBackups animals{BACKUPS}/PointInTimeRecoveryStatus",
            "DISABLED",
            ["animals has no backups: point-in-time recovery is off"],
        ),
        (
            f"dynamodb:DescribeContinuousBackups keys{BACKUPS}/PointInTimeRecoveryStatus",
            "DISABLED",
            ["keys has no backups: point-in-time recovery is off"],
        ),
        (
            f"{EXPIRY}/TimeToLiveStatus",
            "DISABLED",
            ["animals grows: idempotency records do not expire"],
        ),
        (
            f"{EXPIRY}/AttributeName",
            "expired",
            ["animals grows: idempotency records do not expire"],
        ),
        (
            "last/counter",
            "9",
            ["animals would give ids again: its counter is at 9, below 10"],
        ),
        (
            "last/counter",
            None,
            ["animals would give ids again: its counter is at 0, below 10"],
        ),
    ],
)
def test_what_has_lapsed_is_named(
    kept: Aws, path: str, value: Any, lapses: list[str]
) -> None:
    assert list(check_stage.lapses(kept.stage)) == []
    change(kept, path, value)
    assert list(check_stage.lapses(kept.stage)) == lapses


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


def test_a_key_that_ends_is_named_by_its_id_and_day(kept: Aws) -> None:
    table = KeyTable(kept.stage.client("dynamodb"), "keys")
    bob = key("bob", 5)
    table.put(bob)
    day = time.strftime("%d %B %Y", time.gmtime(bob.expires))
    assert [*check_stage.lapses(kept.stage)] == [
        f"the key bob (bob) expires on {day}, and its holder has no other"
    ]
