"""API keys: how they are issued, listed and revoked, on moto."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from animal_store import api_key as api_keys
from botocore.exceptions import ClientError
from moto import mock_aws
from typer.testing import CliRunner

from tests.functions import TEMPLATE
from tools.admin import keys as command
from tools.admin.key_table import KeyAdministrationError, KeyRecord, KeyTable, local_user, parse_expiry
from tools.local import template
from tools.local.tables import table_request

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


@pytest.mark.parametrize(
    ("times", "free"),
    [({}, False), ({"expires": 9_999_999_999}, False), ({"expires": 2}, True), ({"revoked": 2}, True)],
)
def test_a_label_belongs_to_one_valid_key(keys: KeyTable, times: Any, free: bool) -> None:
    keys.put(KeyRecord(A, "bob", 1, **times))
    if free:
        assert keys.issue("bob", "test")[1] in keys.all()
        return
    with pytest.raises(KeyAdministrationError, match="belongs to the valid key aaaaaaaaaaaa"):
        keys.issue("bob", "test")
    assert [record.hash for record in keys.all()] == [A]


@pytest.mark.parametrize("error", [KeyAdministrationError, KeyboardInterrupt])
def test_a_key_is_taken_back_if_another_was_issued_at_once_or_the_second_look_fails(
    keys: KeyTable, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    put = KeyTable.put

    def put_late(table: KeyTable, record: KeyRecord) -> None:  # both have found the label free by then
        put(table, KeyRecord(A, "bob", 1))
        put(table, record)
        if error is KeyboardInterrupt:
            monkeypatch.setattr(KeyTable, "all", lambda _: (_ for _ in ()).throw(error))

    monkeypatch.setattr(KeyTable, "put", put_late)
    with pytest.raises(error):
        keys.issue("bob", "test")

    monkeypatch.undo()
    assert [record.state(time.time()) for record in keys.all()] == ["active", "revoked"]


def test_labels_that_are_refused(keys: KeyTable) -> None:
    for label in ("", "  ", " a", "a" * 65, "a\nb", "é", "\x1b[31m"):
        with pytest.raises(KeyAdministrationError, match="--label"):
            keys.issue(label, "test")


@pytest.mark.parametrize("form", [str.lower, str.upper, lambda hash_: hash_[:12], lambda hash_: hash_[:8], None])
def test_revoke_by_hash_id_or_key(keys: KeyTable, form: Callable[[str], str] | None) -> None:
    key, record = keys.issue("bob", "test")
    _, other = keys.issue("eve", "test")

    revoked = KeyTable(keys.dynamodb, NAME, lambda: "carol").revoke(form(record.hash) if form else key)

    assert revoked.state(revoked.created) == "revoked"
    assert (revoked.issuedBy, revoked.revokedBy) == ("alice", "carol")
    assert keys.revoke(record.id) == revoked == keys.get(record.hash)  # it stays as it was
    assert keys.all() == sorted([revoked, other], key=lambda each: (each.created, each.hash))


@pytest.mark.parametrize(
    ("identifier", "message"),
    [
        ("aaaaaaaa", "2 keys begin with this id"),
        ("bbbbbbbb", "No keys begin with this id"),
        (api_keys.generate("test"), "No keys begin with this id"),
        ("aaaa", "at least 8 characters"),
        ("animal_test_wrong", "at least 8 characters"),
    ],
)
def test_revoke_refuses(keys: KeyTable, identifier: str, message: str) -> None:
    for number, label in enumerate(("eve", "bob")):
        keys.put(KeyRecord(f"{A[:-1]}{9 - number}", label, created=number))

    with pytest.raises(KeyAdministrationError, match=message):
        keys.revoke(identifier)
    assert [(record.label, record.revoked) for record in keys.all()] == [("eve", None), ("bob", None)]


def test_a_record_that_cannot_be_read_is_invalid_and_hides_no_other(keys: KeyTable) -> None:
    keys.dynamodb.put_item(TableName=NAME, Item={"hash": {"S": A}, "expires": {"S": "soon"}, "odd": {"BOOL": True}})

    assert keys.all() == [KeyRecord(A, "?", 0, expires=0)]
    assert [KeyRecord(A, "", 1, expires).state(100) for expires in (101, 100)] == ["active", "expired"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90d", datetime(2027, 2, 19, 12, tzinfo=UTC)),
        ("2027-01-31", datetime(2027, 2, 1, tzinfo=UTC)),
        ("2026-11-21", datetime(2026, 11, 22, tzinfo=UTC)),
        *((text, None) for text in ("2026-11-20", "0d", "-1d", "90", "tomorrow", "2027-02-30", "9999-12-31", "")),
    ],
)
def test_expiry(text: str, expected: datetime | None) -> None:
    if expected:
        assert parse_expiry(text, NOW) == expected.timestamp()
        return
    with pytest.raises(KeyAdministrationError, match="--expires"):
        parse_expiry(text, NOW)


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(keys: KeyTable) -> Run:  # noqa: ARG001 - the table must be there
    """Give what runs the command on the table, and reads JSON."""

    def run(*arguments: str, status: int = 0) -> Any:
        done = CliRunner().invoke(command.app, [*arguments, "--table", NAME])
        assert done.exit_code == status, done.output
        return json.loads(done.output) if "--json" in arguments else done.output

    return run


def test_a_key_expires_in_a_year_unless_asked_otherwise(run: Run) -> None:
    assert run("issue", "--label", "a", "--json")["expires"] == pytest.approx(time.time() + 365 * 86_400, abs=60)
    assert run("issue", "--label", "b", "--json", "--expires", "never")["expires"] is None


def test_records_say_by_arn_or_name_who_issued_and_revoked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    issued = run("issue", "--label", "bob", "--json", "--expires", "2099-12-30")
    run("revoke", issued["id"])
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "https://dynamodb.us-east-1.amazonaws.com")  # another DynamoDB
    other = run("issue", "--label", "eve", "--json")

    assert run("list", "--json")[0]["revokedBy"] == issued["issuedBy"] == "arn:aws:sts::123456789012:user/moto"
    assert other["issuedBy"] == local_user()
    for shown in (issued["id"], " bob ", "2099-12-31 00:00", "revoked", "user/moto"):
        assert shown in run("list")


def test_production_keys_are_live_and_a_stage_is_found_by_its_stack(keys: KeyTable) -> None:
    body = {"Resources": {"A": {"Type": "AWS::SNS::Topic"}}, "Outputs": {"ApiKeysTableName": {"Value": NAME}}}
    boto3.client("cloudformation").create_stack(StackName="animal-store-production", TemplateBody=json.dumps(body))

    done = CliRunner().invoke(command.app, ["issue", "--label", "bob", "--stage", "production"])

    assert done.stdout.startswith("animal_live_"), done.output
    assert [record.label for record in keys.all()] == ["bob"]


def test_nothing_in_the_table_steers_the_terminal(run: Run, keys: KeyTable) -> None:
    record = KeyRecord(A, "\x1b[2J\u202e\x9b[red]bob", created=1, issuedBy="\x1b]0;eve\x07")
    keys.put(record)

    for output in (run("list"), run("revoke", record.id), run("revoke", "\x1b[2J", status=1)):
        assert output.replace("\n", "").isprintable()
    assert "\\x1b[2J\\u202e\\x9b[red]bob" in run("list")
