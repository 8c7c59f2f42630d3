"""What `make restore` does and says; tests/reliability/test_repair.py checks the repair itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import boto3
import pytest
from moto import mock_aws

from tools.deployment.restore import restore
from tools.deployment.stage import DeploymentError, Stage
from tools.local.service import load_template

AT = "2027-01-31T04:30:00+02:00"
ANIMALS = "animal-store-production-AnimalsTable-1A2B3C4D5E6F"
KEYS = "animal-store-production-ApiKeysTable-1A2B3C4D5E6F"
COPY = "animal-store-production-AnimalsTable-copy-20270131T023000Z"
COUNTER = {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": "2"}}
BOB = {"hash": {"S": "0b" * 32}, "label": {"S": "bob"}}


def animal(number: str, born: str = "1", **members: Any) -> Any:
    key = {"pk": {"S": "pet"}, "id": {"N": number}}
    return {**key, "createdAt": {"N": born}, **members}


@pytest.fixture
def dynamodb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make the tables of a stage with two animals and a key."""
    monkeypatch.chdir(tmp_path)
    tables = load_template().tables
    with mock_aws():
        client = boto3.client("dynamodb", "us-east-1")
        for name in (ANIMALS, KEYS):
            request = tables[name.split("-")[3]].request
            client.create_table(**request | {"TableName": name})
        for item in (COUNTER, animal("1"), animal("2")):
            client.put_item(TableName=ANIMALS, Item=item)
        client.put_item(TableName=KEYS, Item=BOB)
        yield client


@pytest.fixture
def stage(dynamodb: Any) -> Stage:
    """Give a stage of these tables, which a copy was made of."""
    aws = MagicMock()
    aws.meta.region_name = "us-east-1"
    aws.get_caller_identity.return_value = {"Arn": "arn:aws:iam::1:user/eve"}
    names = {"AnimalsTableName": ANIMALS, "ApiKeysTableName": KEYS}
    outputs = [{"OutputKey": key, "OutputValue": names[key]} for key in names]
    aws.describe_stacks.return_value = {"Stacks": [{"Outputs": outputs}]}
    made = Stage(
        "production",
        lambda name: dynamodb if name == "dynamodb" else aws,
        sleep=lambda _: None,
    )
    restore(made, AT)
    return made


def items(dynamodb: Any, table: str = ANIMALS) -> list[Any]:
    return sorted(dynamodb.scan(TableName=table)["Items"], key=str)


def test_damage_is_first_listed_and_then_repaired_from_the_same_copy(
    dynamodb: Any, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    before = items(dynamodb)
    dynamodb.delete_item(TableName=ANIMALS, Key={"pk": {"S": "pet"}, "id": {"N": "1"}})
    dynamodb.put_item(TableName=ANIMALS, Item=animal("2", name={"S": "x"}))
    damaged = items(dynamodb)

    restore(stage, AT)
    assert items(dynamodb) == damaged
    arn = dynamodb.describe_table(TableName=COPY)["Table"]["TableArn"]
    tag, *_ = dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"]
    assert f"2 items to write.\n{COPY} stays" in capsys.readouterr().out
    capsys.readouterr()
    restore(stage, AT, apply=True)

    assert items(dynamodb) == before
    assert tag["Key"] == "delete-after"
    assert COPY not in dynamodb.list_tables()["TableNames"]
    printed = "".join(capsys.readouterr())
    assert "production: account 1, us-east-1, as arn:aws:iam::1:user/eve" in printed
    assert f"{ANIMALS} as it was at 2027-01-31T02:30:00Z (UTC)" in printed
    assert "1 missing (put back)" in printed
    assert "1 different: name (put back as it was)" in printed


def test_what_is_named_as_damage_is_deleted_and_can_be_put_back(
    dynamodb: Any, stage: Stage
) -> None:
    stolen = animal("3", "1801361400", createdBy={"S": "3f9a0c12d4e5"})
    record = {"pk": {"S": "idempotency#x"}, "id": {"N": "0"}, "petId": {"N": "3"}}
    earlier = animal("4", createdBy={"S": "3f9a0c12d4e5"})
    other = animal("5", "1801361400", createdBy={"S": "0b0b0b0b0b0b"})
    for item in (stolen, record, earlier, other):
        dynamodb.put_item(TableName=ANIMALS, Item=item)
    hour = ("2027-01-31T02:00:00Z", "2027-01-31T03:00:00Z")

    restore(stage, AT, apply=True, keep=True, created_by="3f9a0c12d4e5", between=hour)
    assert stolen not in items(dynamodb)
    assert record not in items(dynamodb)
    assert earlier in items(dynamodb)
    assert other in items(dynamodb)
    assert COPY in dynamodb.list_tables()["TableNames"]

    dynamodb.delete_item(
        TableName=ANIMALS, Key={"pk": COUNTER["pk"], "id": COUNTER["id"]}
    )
    (file,) = Path().glob("*.jsonl")
    restore(stage, put_back=file, apply=True)
    counter = {**COUNTER, "value": {"N": "5"}}
    for item in (stolen, record, earlier, other, counter):
        assert item in items(dynamodb)


def test_a_record_goes_with_the_damage_that_took_an_animals_id(
    dynamodb: Any, stage: Stage
) -> None:
    stolen = animal("1", "1801361400", createdBy={"S": "3f9a0c12d4e5"})
    record = {"pk": {"S": "idempotency#x"}, "id": {"N": "0"}, "petId": {"N": "1"}}
    for item in (stolen, record):
        dynamodb.put_item(TableName=ANIMALS, Item=item)

    restore(stage, AT, apply=True, created_by="3f9a0c12d4e5")

    stored = [COUNTER, animal("1"), animal("2")]
    assert items(dynamodb) == sorted(stored, key=str)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": "2027-01-31T02:30:00"}, "not a time with its zone"),
        ({"between": (AT, AT)}, "need AT"),
        ({"at": AT, "table": "ApiKeysTable", "created_by": "x"}, "are of animals"),
        ({"put_back": Path("animal-store-staging.jsonl")}, "begins with"),
        ({"at": AT, "put_back": Path("x")}, "takes no AT"),
    ],
)
def test_what_is_refused(stage: Stage, options: Any, message: str) -> None:
    with pytest.raises(DeploymentError, match=message):
        restore(stage, **options)


def test_a_deleted_table_comes_back_protected_with_its_counter_raised(
    dynamodb: Any, stage: Stage
) -> None:
    dynamodb.put_item(TableName=ANIMALS, Item=animal("7"))
    dynamodb.create_backup(TableName=ANIMALS, BackupName="as DynamoDB makes it")
    dynamodb.delete_table(TableName=ANIMALS)
    with pytest.raises(DeploymentError, match="without AT"):
        restore(stage, AT)
    with pytest.raises(DeploymentError, match="--apply restores it"):
        restore(stage)

    restore(stage, apply=True)

    counter = {**COUNTER, "value": {"N": "7"}}
    stored = [counter, animal("1"), animal("2"), animal("7")]
    assert items(dynamodb) == sorted(stored, key=str)
    table = dynamodb.describe_table(TableName=ANIMALS)["Table"]
    recovery = dynamodb.describe_continuous_backups(TableName=ANIMALS)
    expiry = dynamodb.describe_time_to_live(TableName=ANIMALS)["TimeToLiveDescription"]
    assert table["DeletionProtectionEnabled"]
    assert "'PointInTimeRecoveryStatus': 'ENABLED'" in str(recovery)
    assert expiry["AttributeName"] == "expires"


def test_an_id_that_was_given_again_is_left_and_told(
    dynamodb: Any, stage: Stage
) -> None:
    other = animal("1", "1801362600")
    dynamodb.put_item(TableName=ANIMALS, Item=other)
    with pytest.raises(DeploymentError, match="1 items are left"):
        restore(stage, AT, apply=True)
    assert other in items(dynamodb)


def test_what_has_changed_since_the_comparison_is_left_with_the_copy(
    dynamodb: Any, stage: Stage
) -> None:
    dynamodb.put_item(TableName=ANIMALS, Item=animal("1", name={"S": "x"}))
    changed = animal("1", name={"S": "y"})
    other = boto3.client("dynamodb", "us-east-1")

    def change(**_: Any) -> None:
        other.put_item(TableName=ANIMALS, Item=changed)

    dynamodb.meta.events.register("before-call.dynamodb.PutItem", change)
    with pytest.raises(DeploymentError, match="1 have changed"):
        restore(stage, AT, apply=True)

    assert changed in items(dynamodb)
    assert COPY in dynamodb.list_tables()["TableNames"]


def test_nothing_is_overwritten_that_cannot_be_saved(
    dynamodb: Any, stage: Stage
) -> None:
    damaged = animal("1", name={"S": "x"})
    dynamodb.put_item(TableName=ANIMALS, Item=damaged)
    folder = Path().absolute()
    folder.rmdir()
    with pytest.raises(DeploymentError, match="jsonl, without which"):
        restore(stage, AT, apply=True)
    assert damaged in items(dynamodb)


def test_a_key_comes_back(dynamodb: Any, stage: Stage) -> None:
    restore(stage, AT, "ApiKeysTable")
    dynamodb.delete_item(TableName=KEYS, Key={"hash": BOB["hash"]})
    restore(stage, AT, "ApiKeysTable", apply=True)
    assert items(dynamodb, KEYS) == [BOB]


def test_an_interruption_says_what_is_left(
    dynamodb: Any, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(**_: Any) -> None:
        raise KeyboardInterrupt

    dynamodb.meta.events.register("before-call.dynamodb.Query", interrupt)
    with pytest.raises(KeyboardInterrupt):
        restore(stage, AT, apply=True)
    left = f"Not finished: 0 items were written. Copy: {COPY}"
    assert left in capsys.readouterr().out


def test_a_copy_is_awaited(
    dynamodb: Any, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses = ["CREATING", "ACTIVE"]

    def answer(parsed: Any, **_: Any) -> None:
        parsed["Table"]["TableStatus"] = statuses.pop() if statuses else "ACTIVE"

    dynamodb.meta.events.register("after-call.dynamodb.DescribeTable", answer)
    restore(stage, AT)
    assert f"{COPY} is CREATING" in capsys.readouterr().out
