"""What a check of a stage finds: manual changes, and what lapses without any."""

import time
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.aws import Aws, pack
from tests.support.handlers import ANIMALS, API_KEYS
from tests.support.stack import load
from tools.deployment import check_stage, commands
from tools.key_table import KeyRecord

# What somebody changed, to what, and how the complaint begins: one for each, and none without.
FAULTS = """
- [stack/Parameters/MemorySize, "128", "parameters: MemorySize is 128, not 1024"]
- [lambda:GetFunction/Configuration/Architectures, [x86_64], Architectures is]
- [lambda:GetFunction/Configuration/CodeSha256, qg==, "code is aa, not "]
- [lambda:GetFunction/Configuration/Environment/Variables/DEPLOYMENT, "", Environment is]
- [lambda:GetFunction/Configuration/Environment/Variables/STAGE, "", Environment is]
- [lambda:GetFunction/Configuration/Handler, app.main, Handler is app.main]
- [lambda:GetFunction/Configuration/Layers, [], "layers is [], not"]
- [lambda:GetFunction/Configuration/LoggingConfig/ApplicationLogLevel, ERROR, LoggingConfig is]
- [lambda:GetFunction/Configuration/LoggingConfig/LogGroup, another, LoggingConfig is]
- [lambda:GetFunction/Configuration/MemorySize, 128, "MemorySize is 128, not 1024"]
- [lambda:GetFunction/Configuration/Role, role/admin, "Role is admin, not role-of-list-pets"]
- [lambda:GetFunction/Configuration/Runtime, python3.12, Runtime is]
- [lambda:GetFunction/Configuration/Timeout, 900, "Timeout is 900, not 10"]
- [lambda:GetFunction/Concurrency, {ReservedConcurrentExecutions: 0}, reserved concurrency is 0]
- [lambda:GetLayerVersionByArn/Content/CodeSha256, uw==, "layers is ['bb'], not"]
- [lambda:GetAlias/RoutingConfig, {AdditionalVersionWeights: {"2": 0.1}}, shares of other]
- [stack/EnableTerminationProtection, false, "animal-store-production: EnableTermination"]
- - sns:ListSubscriptionsByTopic/Subscriptions
  - [{SubscriptionArn: PendingConfirmation}, {SubscriptionArn: Deleted}]
  - alarms reach nobody
- ["dynamodb:DescribeTable ANIMALS", {Table: {}}, "ANIMALS: DeletionProtectionEnabled is None"]
- ["dynamodb:DescribeTable KEYS", {Table: {}}, "KEYS: DeletionProtectionEnabled is None"]
- - dynamodb:DescribeContinuousBackups ANIMALS
  - ContinuousBackupsDescription: {PointInTimeRecoveryDescription: {}}
  - "ANIMALS: PointInTimeRecoveryStatus is"
- - dynamodb:DescribeContinuousBackups KEYS
  - ContinuousBackupsDescription: {PointInTimeRecoveryDescription: {}}
  - "KEYS: PointInTimeRecoveryStatus is"
- - dynamodb:DescribeTimeToLive/TimeToLiveDescription/TimeToLiveStatus
  - DISABLED
  - "ANIMALS: TimeToLiveStatus is DISABLED, not ENABLED"
- [dynamodb:DescribeTimeToLive/TimeToLiveDescription/AttributeName, expired, "ANIMALS: Attribute"]
"""
TABLES = FAULTS.replace("ANIMALS", ANIMALS).replace("KEYS", API_KEYS)


@pytest.fixture
def kept(production: Aws) -> Aws:
    """Let the stage have somebody who gets its alarms."""
    production.stack["Parameters"] |= {"AlarmEmail": "a@b.c", "Canary": "false"}
    return production


@pytest.mark.parametrize(("path", "value", "complaint"), yaml.safe_load(TABLES))
def test_one_change_gets_one_complaint(
    kept: Aws, path: str, value: Any, complaint: str
) -> None:
    *folders, name = path.split("/")
    kept.answers["stack"] = kept.stack
    reduce(getitem, folders, kept.answers)[name] = value

    differences = check_stage.differences(kept.stage, pack("older"))
    (only,) = [*differences, *check_stage.lapses(kept.stage)]
    assert only.removeprefix("ListPetsFunction: ").startswith(complaint)


def test_what_is_as_it_should_be_gets_no_complaint(kept: Aws) -> None:
    commands.check(kept.stage)
    kept.stack["Parameters"]["AlarmEmail"] = ""
    kept.answers["sns:ListSubscriptionsByTopic"] = {}
    commands.check(kept.stage)


@pytest.mark.parametrize(
    ("last", "counter"),
    [({"value": {"N": "9"}}, "9"), ({"value": {"S": "9"}}, "0"), ({}, "0")],
)
def test_a_counter_below_the_last_id_is_a_lapse(
    kept: Aws, last: Any, counter: str
) -> None:
    kept.last["counter"] = last
    (lapse,) = check_stage.lapses(kept.stage)
    assert lapse.endswith(f"give ids again: its counter is at {counter}, below 10")


def test_a_creation_between_the_two_reads_is_no_lapse(kept: Aws) -> None:
    numbers = iter(("11", "12"))

    def create(_: object) -> Any:
        number = {"N": next(numbers)}
        return {"Items": [{"id": number, "value": number}]}

    kept.answers["dynamodb:Query"] = create
    assert [*check_stage.lapses(kept.stage)] == []


def test_what_the_service_needs_can_be_told_from_its_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each name is known to which a setting of its functions refers."""
    monkeypatch.chdir(tmp_path)
    template = load("template.yaml")
    names = dict.fromkeys(template["Parameters"], "0") | {"Deployed": "now"}
    for name in template["Resources"]:
        names[name] = f"production-{name}"

    settings = check_stage.expected(pack("newer", yaml.safe_dump(template)), names)

    found = settings["CreatePetFunction"]
    variables = found["Environment"]["Variables"]
    assert variables["ANIMALS_TABLE"] == "production-AnimalsTable"
    assert found["LoggingConfig"]["LogGroup"] == "production-CreatePetLogGroup"
    assert found["Role"] == "production-CreatePetRole"


# Label, days until the key expires, days of its life, whether it was revoked.
@pytest.mark.parametrize(
    ("keys", "labels"),
    [
        ("bob 29 180 0", "bob"),
        ("bob 31 180 0", ""),
        ("bob -1 180 0", ""),
        ("bob 29 180 1", ""),
        ("check-1 1 1 0", ""),
        # A successor has a label of the same holder, and lasts.
        ("bob-2026 29 180 0, bob-2027 180 180 0", ""),
        ("bob 29 180 0, bob-2027 180 180 0", ""),
        ("bob-2026 29 180 0, bob-2027 180 180 1", "bob-2026"),
        ("bob-2026 29 180 0, bob-2027 20 180 0", "bob-2026 bob-2027"),
        ("bob-2026 29 180 0, bobby-2027 180 180 0", "bob-2026"),
        ("web-api 29 180 0, web-app 180 180 0", "web-api"),
    ],
)
def test_keys_that_expire_within_30_days_need_a_successor(
    keys: str, labels: str
) -> None:
    day, now = 86_400, int(time.time())
    records = []
    for line in keys.split(", "):
        label, days, life, revoked = line.split()
        expires = now + int(days) * day
        created = expires - int(life) * day
        records.append(KeyRecord(label, label, created, expires, int(revoked) or None))
    assert [each.label for each in check_stage.ending(records)] == labels.split()


def test_a_key_that_ends_is_named_by_its_id_and_day(kept: Aws) -> None:
    expires = int(time.time()) + 86_400
    kept.keys.put(KeyRecord("a" * 64, "bob", 1, expires))
    (lapse,) = check_stage.lapses(kept.stage)
    day = time.strftime("%d %B %Y", time.gmtime(expires))
    assert lapse.startswith(f"the key aaaaaaaaaaaa (bob) expires on {day}, and its")
