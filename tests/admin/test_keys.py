"""API keys: how they are issued, listed and revoked, on moto."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from animal_store import api_key as api_keys
from botocore.exceptions import ClientError
from moto import mock_aws
from typer.testing import CliRunner

from tests.support.handlers import TEMPLATE
from tools import key_table
from tools.admin import keys as command
from tools.key_table import (
    KeyAdministrationError,
    KeyRecord,
    KeyTable,
    local_user,
    parse_expiry,
)
from tools.local import template
from tools.local.service import table_request

NAME = f"{template.STACK_NAME}-ApiKeysTable"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
A = "a" * 64

Run = Callable[..., Any]


@pytest.fixture
def keys() -> Iterator[KeyTable]:
    """The table of keys, empty, on AWS as moto plays it."""
    with mock_aws():
        client = boto3.client("dynamodb")
        client.create_table(**table_request(TEMPLATE.tables["ApiKeysTable"]))
        yield KeyTable(client, NAME, lambda: "alice")


def test_issued_key_is_stored_as_its_hash_alone(keys: KeyTable) -> None:
    key, record = keys.issue("mobile app (team blue)", "live", expires=1_900_000_000)
    assert key.startswith("animal_live_")
    assert api_keys.is_well_formed(key)
    assert keys.dynamodb.scan(TableName=NAME)["Items"] == [
        {
            "hash": {"S": api_keys.digest(key)},
            "label": {"S": "mobile app (team blue)"},
            "created": {"N": str(record.created)},
            "expires": {"N": "1900000000"},
            "issuedBy": {"S": "alice"},
        }
    ]
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):  # nothing is written over
        keys.put(KeyRecord(record.hash, "eve", 0))


def test_a_label_belongs_to_one_valid_key(keys: KeyTable) -> None:
    keys.put(KeyRecord(A, "expired", 1, expires=2))
    keys.put(KeyRecord("b" * 64, "revoked", 1, revoked=2))
    for label in ("expired", "revoked", "mobile app (team blue)"):
        keys.issue(label, "test", 9_999_999_999)
        with pytest.raises(KeyAdministrationError, match="belongs to the valid key"):
            keys.issue(label, "test")
    assert len(keys.all()) == 5


def test_of_two_keys_issued_at_once_one_stays(
    keys: KeyTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = KeyTable.put

    def put_late(
        table: KeyTable, record: KeyRecord
    ) -> None:  # both have found the label free by then
        put(table, KeyRecord(A, "bob", 1))
        put(table, record)

    monkeypatch.setattr(KeyTable, "put", put_late)
    with pytest.raises(KeyAdministrationError, match="belongs to the valid key aaaaaaaaaaaa"):
        keys.issue("bob", "test")
    assert [record.state(time.time()) for record in keys.all()] == ["active", "revoked"]


def test_a_key_is_taken_back_if_the_second_look_is_interrupted(
    keys: KeyTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        KeyTable, "_require_free_label", Mock(side_effect=[None, KeyboardInterrupt])
    )
    with pytest.raises(KeyboardInterrupt):
        keys.issue("bob", "test")
    assert [record.state(time.time()) for record in keys.all()] == ["revoked"]


def test_labels_that_are_refused(keys: KeyTable) -> None:
    for label in ("", "  ", " a", "a" * 65, "a\nb", "é", "\x1b[31m"):
        with pytest.raises(KeyAdministrationError, match="--label"):
            keys.issue(label, "test")


def test_revoke_by_key_hash_or_its_beginning(keys: KeyTable) -> None:
    issued = [keys.issue(f"key {number}", "test") for number in range(5)]
    names = (issued[0][0], issued[1][1].hash, issued[2][1].id.upper(), issued[3][1].hash[:8])
    for name, (_, record) in zip(names, issued, strict=False):
        revoked = KeyTable(keys.dynamodb, NAME, lambda: "carol").revoke(name)
        assert (revoked.issuedBy, revoked.revokedBy, revoked.state(0)) == (
            "alice",
            "carol",
            "revoked",
        )
        assert keys.revoke(record.id) == revoked == keys.get(record.hash)  # it stays as it was
    assert keys.get(issued[4][1].hash) == issued[4][1]


def test_of_two_revocations_at_once_the_first_stays(
    keys: KeyTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, valid = keys.issue("bob", "test")
    first = keys.revoke(valid.id)
    # Another person has found the key valid, and revokes it a second later.
    monkeypatch.setattr(KeyTable, "all", lambda _: [valid])
    monkeypatch.setattr(key_table, "time", Mock(time=lambda: 9_999_999_999))

    second = KeyTable(keys.dynamodb, NAME, lambda: "carol").revoke(valid.id)

    assert second == first


def test_revoke_refuses(keys: KeyTable) -> None:
    records = [KeyRecord(A[:-1] + "2", "eve", created=1), KeyRecord(A[:-1] + "1", "bob", created=2)]
    for record in reversed(records):
        keys.put(record)
    for name in ("aaaaaaaa", "bbbbbbbb", api_keys.generate("test")):
        with pytest.raises(KeyAdministrationError, match=r"(2|No) keys begin with this id"):
            keys.revoke(name)
    for name in ("aaaa", "animal_test_wrong"):
        with pytest.raises(KeyAdministrationError, match="at least 8 characters"):
            keys.revoke(name)
    assert keys.all() == records


def test_a_record_that_cannot_be_read_is_invalid_and_hides_no_other(keys: KeyTable) -> None:
    keys.dynamodb.put_item(
        TableName=NAME, Item={"hash": {"S": A}, "expires": {"S": "soon"}, "odd": {"BOOL": True}}
    )
    assert keys.all() == [KeyRecord(A, "?", 0, expires=0)]
    assert [KeyRecord(A, "", 1, expires).state(100) for expires in (0, 100, 101)] == [
        "expired",
        "expired",
        "active",
    ]


def test_expiry() -> None:
    assert parse_expiry("90d", NOW) == datetime(2027, 2, 19, 12, tzinfo=UTC).timestamp()
    assert parse_expiry("2026-11-21", NOW) == datetime(2026, 11, 22, tzinfo=UTC).timestamp()
    for text in ("2026-11-20", "0d", "-1d", "90", "tomorrow", "2027-02-30", "9999-12-31", ""):
        with pytest.raises(KeyAdministrationError, match="--expires"):
            parse_expiry(text, NOW)


@pytest.fixture
def run(keys: KeyTable) -> Run:  # noqa: ARG001 - the table must be there
    """Give what runs the command on the table, and reads JSON."""

    def run(*arguments: str, status: int = 0) -> Any:
        done = CliRunner().invoke(command.app, [*arguments, "--table", NAME])
        assert done.exit_code == status, done.output
        return json.loads(done.output) if "--json" in arguments else done.output

    return run


def test_records_say_by_arn_or_name_who_issued_and_revoked(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued = run("issue", "--label", "bob", "--json", "--expires", "2099-12-30")
    run("revoke", issued["id"])
    monkeypatch.setenv(
        "AWS_ENDPOINT_URL_DYNAMODB", "https://dynamodb.us-east-1.amazonaws.com"
    )  # another DynamoDB
    other = run("issue", "--label", "eve", "--json")
    (revoked,) = (record for record in run("list", "--json") if record["label"] == "bob")
    assert revoked["revokedBy"] == issued["issuedBy"] == "arn:aws:sts::123456789012:user/moto"
    assert other["issuedBy"] == local_user()
    assert other["expires"] == pytest.approx(time.time() + 365 * 86_400, abs=60)
    assert run("issue", "--label", "app", "--json", "--expires", "never")["expires"] is None
    for shown in (issued["id"], " bob ", "2099-12-31 00:00", "revoked", "user/moto"):
        assert shown in run("list")


def test_production_keys_are_live_and_a_stage_is_found_by_its_stack(keys: KeyTable) -> None:
    body = {
        "Resources": {"A": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {"ApiKeysTableName": {"Value": NAME}},
    }
    boto3.client("cloudformation").create_stack(
        StackName="animal-store-production", TemplateBody=json.dumps(body)
    )

    done = CliRunner().invoke(command.app, ["issue", "--label", "bob", "--stage", "production"])
    assert done.stdout.startswith("animal_live_"), done.output
    assert [record.label for record in keys.all()] == ["bob"]


def test_nothing_in_the_table_steers_the_terminal(run: Run, keys: KeyTable) -> None:
    record = KeyRecord(A, "\x1b[2J\u202e\x9b[red]bob", created=1, issuedBy="\x1b]0;eve\x07")
    keys.put(record)
    for output in (run("list"), run("revoke", record.id), run("revoke", "\x1b[2J", status=1)):
        assert output.replace("\n", "").isprintable()
    assert "\\x1b[2J\\u202e\\x9b[red]bob" in run("list")
