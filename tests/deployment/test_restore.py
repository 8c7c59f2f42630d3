"""What `make restore` does and says; tests/reliability/test_repair.py checks the repair itself."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from moto import mock_aws

from tests.support.aws import OUTPUTS, Aws, client
from tests.support.handlers import ANIMALS, API_KEYS, TEMPLATE
from tools.deployment import repair
from tools.deployment.restore import restore
from tools.deployment.stage import DeploymentError, Stage

# In the future, because records of `Idempotency-Key`s are compared for a day.
AT = "2099-01-31T04:30:00+02:00"
COPY = "animal-store-production-AnimalsTable-copy-20990131T023000Z"
COUNTER = {"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": "2"}}
THIEF: Any = {"createdBy": {"S": "3f9a0c12d4e5"}}


def animal(number: str, born: str = "1", **members: Any) -> Any:
    key = {"pk": {"S": "pet"}, "id": {"N": number}}
    return {**key, "createdAt": {"N": born}, **members}


def record(number: str) -> Any:
    key = {"pk": {"S": "idempotency#x"}, "id": {"N": "0"}}
    return {**key, "petId": {"N": number}}


@pytest.fixture
def dynamodb(aws: Aws) -> Iterator[Any]:
    """Make the tables of a stage, with two animals."""
    aws.stack = {"Outputs": OUTPUTS}
    with mock_aws():
        made = boto3.client("dynamodb", "us-east-1")
        for table in TEMPLATE.tables.values():
            made.create_table(**table.request)
        put(made, COUNTER, animal("1"), animal("2"))
        yield made


@pytest.fixture
def stage(aws: Aws, dynamodb: Any, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Give a stage of these tables, which a copy was made of."""
    monkeypatch.setattr(repair, "IDS_AT_ONCE", 1)
    monkeypatch.setattr(repair, "MOST_PARTS", 3)
    clients = {"dynamodb": dynamodb}
    made = replace(aws.stage, client=lambda name: clients.get(name) or client(name))
    restore(made, AT)
    return made


def put(dynamodb: Any, *stored: Any) -> None:
    for item in stored:
        dynamodb.put_item(TableName=ANIMALS, Item=item)


def items(dynamodb: Any) -> list[Any]:
    return sorted(dynamodb.scan(TableName=ANIMALS)["Items"], key=str)


def test_damage_is_first_listed_and_then_repaired_from_the_same_copy(
    dynamodb: Any, stage: Stage, aws: Aws
) -> None:
    before = items(dynamodb)
    dynamodb.delete_item(TableName=ANIMALS, Key={"pk": {"S": "pet"}, "id": {"N": "1"}})
    put(dynamodb, animal("2", name={"S": "x"}))
    damaged = items(dynamodb)

    restore(stage, AT)
    assert items(dynamodb) == damaged
    arn = dynamodb.describe_table(TableName=COPY)["Table"]["TableArn"]
    tag, *_ = dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"]
    assert (
        f"2 items to write.\n--apply deletes the copy, which costs money: {COPY}"
        in aws.session()
    )
    restore(stage, AT, apply=True)

    assert items(dynamodb) == before
    assert tag["Key"] == "delete-after"
    assert COPY not in dynamodb.list_tables()["TableNames"]
    printed = aws.session()
    assert "production in eu-central-1 as arn:aws:iam" in printed
    assert f"{ANIMALS} as it was at 2099-01-31T02:30:00Z (UTC)" in printed
    assert " 1 missing (put back)" in printed
    assert " 1 different: name (put back as it was)" in printed
    assert "2 items were written." in printed
    assert "compared" not in printed
    *_, file = sorted(Path().glob("*.jsonl"))
    assert '"verdict": "missing"' in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_is_named_as_damage_is_deleted_and_can_be_put_back(
    dynamodb: Any, stage: Stage
) -> None:
    stolen = [animal("3", "4073508600", **THIEF), record("3")]
    kept = [animal("4", **THIEF), animal("5", "4073508600")]
    put(dynamodb, *stolen, *kept, animal("2", name={"S": "x"}))
    hour = ("2099-01-31T02:00:00Z", "2099-01-31T03:00:00Z")

    restore(stage, AT, apply=True, keep=True, created_by="3f9a0c12d4e5", between=hour)
    left = [COUNTER | {"value": {"N": "5"}}, animal("1"), animal("2"), *kept]
    assert items(dynamodb) == sorted(left, key=str)
    assert COPY in dynamodb.list_tables()["TableNames"]

    put(dynamodb, COUNTER)
    (file,) = Path().glob("*.jsonl")
    restore(stage, put_back=file, apply=True)
    assert items(dynamodb) == sorted(left + stolen, key=str)


def test_a_record_goes_with_the_damage_that_took_an_animals_id(
    dynamodb: Any, stage: Stage
) -> None:
    long_ago = "2020-01-01T00:00:00Z"
    restore(stage, long_ago)
    before = items(dynamodb)
    put(dynamodb, animal("1", "4073508600", **THIEF), record("1"))
    restore(stage, long_ago, apply=True, created_by="3f9a0c12d4e5")
    assert items(dynamodb) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": "2099-01-31T02:30:00"}, "not a time with its zone"),
        ({"between": (AT, AT)}, "need AT"),
        ({"at": AT, "table": "ApiKeysTable", "created_by": "x"}, "are of animals"),
        ({"put_back": Path("animal-store-staging.jsonl")}, "begins with"),
        ({"at": AT, "put_back": Path("deleted.jsonl")}, "takes no AT"),
    ],
)
def test_what_is_refused(stage: Stage, options: Any, message: str) -> None:
    with pytest.raises(DeploymentError, match=message):
        restore(stage, **options)


def test_a_deleted_table_comes_back_protected_with_its_counter_raised(
    dynamodb: Any, stage: Stage
) -> None:
    dynamodb.create_backup(TableName=ANIMALS, BackupName="of an earlier deletion")
    put(dynamodb, animal("7"))
    dynamodb.create_backup(TableName=ANIMALS, BackupName="as DynamoDB makes it")
    dynamodb.delete_table(TableName=ANIMALS)
    asked = Mock(return_value=None)
    dynamodb.meta.events.register("provide-client-params.dynamodb.ListBackups", asked)
    with pytest.raises(DeploymentError, match="--apply without AT restores it"):
        restore(stage, AT)

    restore(stage, apply=True)

    deletions = {"TableName": ANIMALS, "BackupType": "SYSTEM"}
    assert asked.call_args.kwargs["params"] == deletions
    counter = COUNTER | {"value": {"N": "7"}}
    whole = [counter, animal("1"), animal("2"), animal("7")]
    assert items(dynamodb) == sorted(whole, key=str)
    table = dynamodb.describe_table(TableName=ANIMALS)["Table"]
    recovery = dynamodb.describe_continuous_backups(TableName=ANIMALS)
    expiry = dynamodb.describe_time_to_live(TableName=ANIMALS)["TimeToLiveDescription"]
    assert table["DeletionProtectionEnabled"]
    assert "'PointInTimeRecoveryStatus': 'ENABLED'" in str(recovery)
    assert expiry["AttributeName"] == "expires"


def test_the_counter_follows_no_id_that_creations_cannot_have_reached(
    dynamodb: Any, stage: Stage
) -> None:
    put(dynamodb, animal("999999999999"))
    restore(stage, AT, apply=True)
    highest = COUNTER | {"value": {"N": "999999999999"}}
    assert highest in items(dynamodb)

    put(dynamodb, animal("1000000000000"))
    with pytest.raises(DeploymentError, match="1000000000000 is too high"):
        restore(stage, AT, apply=True)
    assert highest in items(dynamodb)


def test_a_lost_counter_comes_back_even_if_the_last_animals_are_gone(
    dynamodb: Any, stage: Stage
) -> None:
    counter = COUNTER | {"value": {"N": "100000000000"}}
    dynamodb.put_item(TableName=COPY, Item=counter)
    key = {"pk": {"S": "counter"}, "id": {"N": "0"}}
    dynamodb.delete_item(TableName=ANIMALS, Key=key)

    restore(stage, AT, apply=True)

    whole = [counter, animal("1"), animal("2")]
    assert items(dynamodb) == sorted(whole, key=str)


def test_an_id_that_was_given_again_is_left_and_told(
    dynamodb: Any, stage: Stage
) -> None:
    other = animal("1", "4073509760")
    put(dynamodb, other, animal("2", name={"S": "x"}))
    dynamodb.put_item(TableName=COPY, Item=record("1"))
    with pytest.raises(DeploymentError, match="2 items are left"):
        restore(stage, AT, apply=True)
    assert items(dynamodb) == sorted([COUNTER, other, animal("2")], key=str)


def test_a_key_that_has_expired_does_not_come_back(dynamodb: Any, stage: Stage) -> None:
    expired = {"hash": {"S": "a"}, "expires": {"N": "1"}}
    dynamodb.put_item(TableName=API_KEYS, Item=expired)
    restore(stage, AT, "ApiKeysTable")
    dynamodb.delete_item(TableName=API_KEYS, Key={"hash": {"S": "a"}})

    restore(stage, AT, "ApiKeysTable", apply=True)

    assert dynamodb.scan(TableName=API_KEYS)["Count"] == 0


def test_an_earlier_expiry_of_a_key_is_kept(dynamodb: Any, stage: Stage) -> None:
    key = {"hash": {"S": "a"}, "label": {"S": "x"}, "expires": {"N": "4000000000"}}
    dynamodb.put_item(TableName=API_KEYS, Item=key)
    restore(stage, AT, "ApiKeysTable")
    earlier = {"expires": {"N": "3900000000"}}
    dynamodb.put_item(TableName=API_KEYS, Item={"hash": {"S": "a"}, **earlier})

    restore(stage, AT, "ApiKeysTable", apply=True)

    assert dynamodb.scan(TableName=API_KEYS)["Items"] == [key | earlier]


def test_no_record_is_there_without_its_animal(dynamodb: Any, stage: Stage) -> None:
    stolen = {**record("3"), "pk": {"S": "idempotency#stolen"}}
    put(dynamodb, animal("3", "4073508600", **THIEF), stolen)
    dynamodb.delete_item(TableName=ANIMALS, Key={"pk": {"S": "pet"}, "id": {"N": "2"}})
    dynamodb.put_item(TableName=COPY, Item=record("2"))
    written: list[str] = []

    def note(params: Any, **_: Any) -> None:
        key = params.get("Item") or params["Key"]
        name = f"{key['pk']['S']} {key['id']['N']}"
        if name in {"idempotency#stolen 0", "pet 2"}:
            time.sleep(0.05)  # what must come later would overtake it
        written.append(name)

    for operation in ("DeleteItem", "PutItem"):
        dynamodb.meta.events.register(
            f"provide-client-params.dynamodb.{operation}", note
        )
    restore(stage, AT, apply=True, created_by="3f9a0c12d4e5")

    assert written[0] == "idempotency#stolen 0"
    assert sorted(written[1:3]) == ["pet 2", "pet 3"]
    assert written[3:] == ["idempotency#x 0"]


def test_what_has_changed_since_the_comparison_is_left_with_the_copy(
    dynamodb: Any, stage: Stage
) -> None:
    put(dynamodb, animal("1", name={"S": "x"}))
    dynamodb.put_item(TableName=COPY, Item=record("1"))
    changed = animal("1", name={"S": "y"})
    other = boto3.client("dynamodb", "us-east-1")
    dynamodb.meta.events.register(
        "before-call.dynamodb.PutItem", lambda **_: put(other, changed)
    )
    with pytest.raises(DeploymentError, match="1 have changed"):
        restore(stage, AT, apply=True)

    assert items(dynamodb) == sorted([COUNTER, changed, animal("2")], key=str)
    assert COPY in dynamodb.list_tables()["TableNames"]


def test_nothing_is_overwritten_that_cannot_be_saved(
    dynamodb: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = animal("1", name={"S": "x"})
    put(dynamodb, damaged)
    folder = Path("gone").absolute()
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(OSError, match="jsonl"):
        restore(stage, AT, apply=True)
    assert damaged in items(dynamodb)


def test_an_interruption_says_what_is_left(
    dynamodb: Any, stage: Stage, aws: Aws
) -> None:
    interrupt = Mock(side_effect=KeyboardInterrupt)
    dynamodb.meta.events.register("before-call.dynamodb.Query", interrupt)
    with pytest.raises(KeyboardInterrupt):
        restore(stage, AT, apply=True)
    assert f"0 items were written. Copy: {COPY}\nRepeat the same" in aws.session()


def test_a_copy_is_awaited(dynamodb: Any, stage: Stage, aws: Aws) -> None:
    statuses = ["CREATING", "ACTIVE"]

    def answer(parsed: Any, **_: Any) -> None:
        parsed["Table"]["TableStatus"] = statuses.pop() if statuses else "ACTIVE"

    dynamodb.meta.events.register("after-call.dynamodb.DescribeTable", answer)
    restore(stage, AT)
    assert f"{COPY} is CREATING" in aws.session()
