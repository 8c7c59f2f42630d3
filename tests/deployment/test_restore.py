"""What `make restore` does and says; tests/reliability/test_repair.py checks the repair itself."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import boto3
import pytest
from moto import mock_aws

from tests.support.stack import load
from tools.deployment import restore
from tools.deployment.stage import DeploymentError, Stage
from tools.local.service import load_template

AT = "2027-01-31T04:30:00+02:00"
ANIMALS = "animal-store-production-AnimalsTable-1A2B3C4D5E6F"
KEYS = "animal-store-production-ApiKeysTable-1A2B3C4D5E6F"
COPY = "animal-store-production-AnimalsTable-copy-20270131T023000Z"
TAGS = [{"Key": "stage", "Value": "production"}]
COUNTER = {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": "2"}}
BOB = {"hash": {"S": "0b" * 32}, "label": {"S": "bob"}}


def animal(number: str, **members: Any) -> Any:
    return {"pk": {"S": "pet"}, "id": {"N": number}, "createdAt": {"N": "1"}, **members}


@pytest.fixture
def dynamodb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make the tables of a stage with two animals and a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.sleep", lambda _: None)
    tables = load_template().tables
    with mock_aws():
        client = boto3.client("dynamodb", "us-east-1")
        for name in (ANIMALS, KEYS):
            client.create_table(
                **tables[name.split("-")[3]].request | {"TableName": name}
            )
        for item in (COUNTER, animal("1"), animal("2")):
            client.put_item(TableName=ANIMALS, Item=item)
        client.put_item(TableName=KEYS, Item=BOB)
        yield client


@pytest.fixture
def stage(dynamodb: Any) -> Stage:
    """Give a stage of these tables."""
    aws = MagicMock()
    aws.get_caller_identity.return_value = {"Arn": "arn:aws:iam::123456789012:user/eve"}
    names = {"AnimalsTableName": ANIMALS, "ApiKeysTableName": KEYS}
    outputs = [{"OutputKey": key, "OutputValue": names[key]} for key in names]
    aws.describe_stacks.return_value = {"Stacks": [{"Outputs": outputs, "Tags": TAGS}]}
    return Stage("production", lambda name: dynamodb if name == "dynamodb" else aws)


def items(dynamodb: Any, table: str = ANIMALS) -> list[Any]:
    return sorted(dynamodb.scan(TableName=table)["Items"], key=str)


def test_damage_is_first_listed_and_then_repaired_from_the_same_copy(
    dynamodb: Any, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    before = items(dynamodb)
    restore.restore(stage, AT)
    dynamodb.delete_item(TableName=ANIMALS, Key={"pk": {"S": "pet"}, "id": {"N": "1"}})
    dynamodb.put_item(TableName=ANIMALS, Item=animal("2", name={"S": "x"}))
    damaged = items(dynamodb)

    restore.restore(stage, AT)
    assert items(dynamodb) == damaged
    tags = dynamodb.list_tags_of_resource(
        ResourceArn=dynamodb.describe_table(TableName=COPY)["Table"]["TableArn"]
    )
    restore.restore(stage, AT, apply=True)

    assert items(dynamodb) == before
    assert {"Key": "moment", "Value": "2027-01-31T02:30:00+00:00"} in tags["Tags"]
    assert COPY not in dynamodb.list_tables()["TableNames"]
    printed = capsys.readouterr().out
    assert (
        f"production, us-east-1, as arn:aws:iam::123456789012:user/eve: {ANIMALS}"
        in printed
    )
    assert "as it was at 2027-01-31T02:30:00Z (UTC)" in printed
    assert "1 missing (put back)" in printed
    assert "what differs: {'name': 1}" in printed


def test_what_is_named_as_damage_is_deleted_and_can_be_put_back(
    dynamodb: Any, stage: Stage
) -> None:
    restore.restore(stage, AT)
    stolen = animal("3", createdBy={"S": "3f9a0c12d4e5"}, createdAt={"N": "1801361400"})
    record = {"pk": {"S": "idempotency#x"}, "id": {"N": "0"}, "petId": {"N": "3"}}
    earlier = animal("4", createdBy={"S": "3f9a0c12d4e5"})
    counter = {**COUNTER, "value": {"N": "4"}}
    for item in (stolen, record, earlier, counter):
        dynamodb.put_item(TableName=ANIMALS, Item=item)
    before = items(dynamodb)
    hour = ("2027-01-31T02:00:00Z", "2027-01-31T03:00:00Z")

    restore.restore(
        stage, AT, apply=True, keep=True, created_by="3f9a0c12d4e5", between=hour
    )
    assert [item for item in before if item not in items(dynamodb)] == [record, stolen]
    assert COPY in dynamodb.list_tables()["TableNames"]

    restore.restore(stage, put_back=Path(f"{COPY}.jsonl"), apply=True)
    assert [item for item in before if item not in items(dynamodb)] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": "2027-01-31T02:30:00"}, "not a time with its zone"),
        ({"at": "2027-01-31"}, "not a time with its zone"),
        ({"between": (AT, AT)}, "need AT"),
        ({"at": AT, "table": "ApiKeysTable", "created_by": "x"}, "are of animals"),
        ({"put_back": Path("animal-store-staging.jsonl")}, "begins with"),
    ],
)
def test_what_is_refused(stage: Stage, options: Any, message: str) -> None:
    with pytest.raises(DeploymentError, match=message):
        restore.restore(stage, **options)


def test_a_deleted_table_comes_back_as_the_template_has_it(
    dynamodb: Any, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    before = items(dynamodb)
    dynamodb.create_backup(TableName=ANIMALS, BackupName="as DynamoDB makes it")
    dynamodb.delete_table(TableName=ANIMALS)
    with pytest.raises(DeploymentError, match="Repeat without AT"):
        restore.restore(stage, AT)
    restore.restore(stage)
    assert ANIMALS not in dynamodb.list_tables()["TableNames"]

    restore.restore(stage, apply=True)

    assert items(dynamodb) == before
    table = dynamodb.describe_table(TableName=ANIMALS)["Table"]
    recovery = dynamodb.describe_continuous_backups(TableName=ANIMALS)
    expiry = dynamodb.describe_time_to_live(TableName=ANIMALS)["TimeToLiveDescription"]
    template = load("template.yaml")["Resources"]["AnimalsTable"]["Properties"]
    assert table["DeletionProtectionEnabled"]
    assert "'PointInTimeRecoveryStatus': 'ENABLED'" in str(recovery)
    assert (
        expiry["AttributeName"] == template["TimeToLiveSpecification"]["AttributeName"]
    )
    tags = dynamodb.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]
    assert tags == TAGS
    capsys.readouterr()
    restore.restore(stage)
    assert "lacks" not in capsys.readouterr().out


def test_the_record_of_an_idempotency_key_comes_back_while_it_lasts(
    dynamodb: Any, stage: Stage
) -> None:
    at = datetime.now(UTC).isoformat()
    key = {"pk": {"S": "idempotency#x"}, "id": {"N": "0"}}
    expires = {"N": str(int(time.time()) + 3600)}
    record = {**key, "petId": {"N": "1"}, "expires": expires}
    dynamodb.put_item(TableName=ANIMALS, Item=record)
    restore.restore(stage, at)
    dynamodb.delete_item(TableName=ANIMALS, Key=key)

    restore.restore(stage, at, apply=True)

    assert record in items(dynamodb)


def test_what_has_changed_since_the_comparison_is_left(
    dynamodb: Any, stage: Stage
) -> None:
    restore.restore(stage, AT)
    dynamodb.put_item(TableName=ANIMALS, Item=animal("1", name={"S": "x"}))
    changed = animal("1", name={"S": "y"})
    other = boto3.client("dynamodb", "us-east-1")

    def change(**_: Any) -> None:
        other.put_item(TableName=ANIMALS, Item=changed)

    dynamodb.meta.events.register("before-call.dynamodb.PutItem", change)
    with pytest.raises(DeploymentError, match="1 have changed"):
        restore.restore(stage, AT, apply=True)

    assert changed in items(dynamodb)


def test_the_counter_is_raised_without_a_copy(dynamodb: Any, stage: Stage) -> None:
    dynamodb.put_item(TableName=ANIMALS, Item=animal("7"))
    restore.restore(stage, apply=True)
    assert {**COUNTER, "value": {"N": "7"}} in items(dynamodb)


def test_a_key_comes_back(dynamodb: Any, stage: Stage) -> None:
    restore.restore(stage, AT, "ApiKeysTable")
    dynamodb.delete_item(TableName=KEYS, Key={"hash": BOB["hash"]})
    restore.restore(stage, AT, "ApiKeysTable", apply=True)
    assert items(dynamodb, KEYS) == [BOB]


def test_an_interruption_says_what_is_left(
    dynamodb: Any, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(**_: Any) -> None:
        raise KeyboardInterrupt

    dynamodb.meta.events.register("before-call.dynamodb.Query", interrupt)
    with pytest.raises(KeyboardInterrupt):
        restore.restore(stage, AT, apply=True)
    assert f"0 items were written; the copy, if it was begun, is {COPY}" in (
        capsys.readouterr().out
    )


def test_the_wait_for_a_copy_is_told(
    dynamodb: Any, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses = ["ACTIVE", "ACTIVE", "ACTIVE", "CREATING"]

    def answer(parsed: Any, **_: Any) -> None:
        if statuses and "Table" in parsed:
            parsed["Table"]["TableStatus"] = statuses.pop(0)

    dynamodb.meta.events.register("after-call.dynamodb.DescribeTable", answer)
    restore.restore(stage, AT)
    assert f"{COPY} is CREATING, after 0 s" in capsys.readouterr().out
