"""API keys: how they are issued, listed and revoked, in a table simulated by moto."""

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
from lambda_local import template
from moto import mock_aws
from typer.testing import CliRunner

from tests.support.handlers import TEMPLATE
from tools.admin import keys as command
from tools.key_table import (
    KeyAdministrationError,
    KeyRecord,
    KeyTable,
    local_user,
    parse_expiry,
)
from tools.local.events import EXAMPLE_KEY
from tools.local.service import table_request

NAME = f"{template.STACK_NAME}-ApiKeysTable"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HASH = "a" * 64
OTHER_HASH = "b" * 64

RunCommand = Callable[..., Any]


@pytest.fixture
def keys() -> Iterator[KeyTable]:
    """Make an empty table of keys, administered by alice."""
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


def test_record_is_not_written_over(keys: KeyTable) -> None:
    keys.put(KeyRecord(HASH, "bob", created=1))

    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        keys.put(KeyRecord(HASH, "eve", created=2))


def test_label_of_a_valid_key_is_refused(keys: KeyTable) -> None:
    keys.issue("bob", "test", expires=9_999_999_999)

    with pytest.raises(KeyAdministrationError, match="belongs to the valid key"):
        keys.issue("bob", "test")


@pytest.mark.parametrize("ended", [{"expires": 2}, {"revoked": 2}])
def test_label_of_an_invalid_key_can_be_used_again(ended: Any, keys: KeyTable) -> None:
    keys.put(KeyRecord(HASH, "bob", 1, **ended))

    keys.issue("bob", "test")

    assert len(keys.all()) == 2


def test_of_two_keys_issued_at_once_one_stays_valid(
    keys: KeyTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = KeyTable.put

    def put_after_another(table: KeyTable, record: KeyRecord) -> None:
        put(table, KeyRecord(HASH, "bob", created=1))
        put(table, record)

    monkeypatch.setattr(KeyTable, "put", put_after_another)
    with pytest.raises(
        KeyAdministrationError, match="belongs to the valid key aaaaaaaaaaaa"
    ):
        keys.issue("bob", "test")

    assert [record.state(time.time()) for record in keys.all()] == ["active", "revoked"]


def test_key_is_revoked_if_its_issue_is_interrupted(
    keys: KeyTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = Mock(side_effect=[None, KeyboardInterrupt])
    monkeypatch.setattr(KeyTable, "_require_free_label", interrupted)

    with pytest.raises(KeyboardInterrupt):
        keys.issue("bob", "test")

    assert keys.all()[0].state(time.time()) == "revoked"


@pytest.mark.parametrize("label", ["", "  ", " a", "a" * 65, "a\nb", "é", "\x1b[31m"])
def test_label_is_refused(label: str, keys: KeyTable) -> None:
    with pytest.raises(KeyAdministrationError, match="--label"):
        keys.issue(label, "test")


@pytest.mark.parametrize("name", [HASH, "aaaaaaaa", "AAAAAAAAAAAA"])
def test_key_is_revoked_by_the_beginning_of_its_hash(name: str, keys: KeyTable) -> None:
    keys.put(KeyRecord(HASH, "bob", created=1))
    keys.put(KeyRecord(OTHER_HASH, "eve", created=2))

    keys.revoke(name)

    assert [record.state(0) for record in keys.all()] == ["revoked", "active"]


def test_key_is_revoked_by_itself(keys: KeyTable) -> None:
    key, record = keys.issue("bob", "test")

    revoked = keys.revoke(key)

    assert (revoked.hash, revoked.revokedBy) == (record.hash, "alice")


def test_second_revocation_changes_nothing(keys: KeyTable) -> None:
    first = KeyRecord(HASH, "bob", created=1, revoked=2, revokedBy="carol")
    keys.put(first)

    assert keys.revoke(HASH) == first
    # As by an administrator who has not seen the first.
    assert keys._revoke(HASH) == first


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aaaaaaaa", "2 keys begin with this id"),
        ("bbbbbbbb", "No keys begin with this id"),
        (EXAMPLE_KEY, "No keys begin with this id"),
        ("aaaa", "at least 8 characters"),
        ("animal_test_wrong", "at least 8 characters"),
    ],
)
def test_revocation_is_refused(name: str, message: str, keys: KeyTable) -> None:
    keys.put(KeyRecord("a" * 63 + "1", "bob", created=1))
    keys.put(KeyRecord("a" * 63 + "2", "eve", created=2))

    with pytest.raises(KeyAdministrationError, match=message):
        keys.revoke(name)


def test_record_that_cannot_be_read_is_expired_and_hides_no_other(
    keys: KeyTable,
) -> None:
    item: Any = {"hash": {"S": HASH}, "expires": {"S": "soon"}, "odd": {"BOOL": True}}
    keys.dynamodb.put_item(TableName=NAME, Item=item)

    assert keys.all() == [KeyRecord(HASH, "?", created=0, expires=0)]


@pytest.mark.parametrize(
    ("expires", "state"), [(0, "expired"), (100, "expired"), (101, "active")]
)
def test_key_is_active_until_it_expires(expires: int, state: str) -> None:
    assert KeyRecord(HASH, "bob", created=1, expires=expires).state(now=100) == state


@pytest.mark.parametrize(
    ("text", "end"), [("90d", "2027-02-19T12:00Z"), ("2026-11-21", "2026-11-22T00:00Z")]
)
def test_expiry_in_days_or_at_the_end_of_a_day(text: str, end: str) -> None:
    assert parse_expiry(text, NOW) == datetime.fromisoformat(end).timestamp()


@pytest.mark.parametrize(
    "text",
    ["2026-11-20", "0d", "-1d", "90", "tomorrow", "2027-02-30", "9999-12-31", ""],
)
def test_expiry_is_refused(text: str) -> None:
    with pytest.raises(KeyAdministrationError, match="--expires"):
        parse_expiry(text, NOW)


@pytest.fixture
def run(keys: KeyTable) -> RunCommand:  # noqa: ARG001 - the table must be there
    """Return a function that runs `keys` on the table, and reads JSON."""

    def run(*arguments: str, status: int = 0) -> Any:
        done = CliRunner().invoke(command.app, [*arguments, "--table", NAME])
        assert done.exit_code == status, done.output
        return json.loads(done.output) if "--json" in arguments else done.output

    return run


def test_record_names_who_issued_and_revoked_by_arn(run: RunCommand) -> None:
    issued = run("issue", "--label", "bob", "--json", "--expires", "2099-12-30")
    run("revoke", issued["id"])

    (record,) = run("list", "--json")
    assert record["issuedBy"] == "arn:aws:sts::123456789012:user/moto"
    assert record["revokedBy"] == "arn:aws:sts::123456789012:user/moto"


def test_record_names_the_local_user_where_dynamodb_is_another(
    run: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://dynamodb.us-east-1.amazonaws.com"
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)

    assert run("issue", "--label", "eve", "--json")["issuedBy"] == local_user()


def test_key_expires_after_a_year_unless_asked_otherwise(run: RunCommand) -> None:
    in_a_year = time.time() + 365 * 86_400

    assert run("issue", "--label", "a", "--json")["expires"] == pytest.approx(
        in_a_year, abs=60
    )
    assert (
        run("issue", "--label", "b", "--json", "--expires", "never")["expires"] is None
    )


def test_list_shows_what_is_known_of_a_key(run: RunCommand, keys: KeyTable) -> None:
    keys.put(KeyRecord(HASH, "bob", 1, 4_102_444_800, 2, "arn:aws:sts::1:user/alice"))

    line = run("list").splitlines()[1]

    assert line.split() == (
        [
            "aaaaaaaaaaaa",
            "1970-01-01",
            "00:00",
            "2100-01-01",
            "00:00",
            "revoked",
            "bob",
            "user/alice",
        ]
    )


def test_production_keys_are_live_and_a_stage_is_found_by_its_stack(
    keys: KeyTable,
) -> None:
    body = {
        "Resources": {"A": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {"ApiKeysTableName": {"Value": NAME}},
    }
    cloudformation = boto3.client("cloudformation")
    cloudformation.create_stack(
        StackName="animal-store-production", TemplateBody=json.dumps(body)
    )

    done = CliRunner().invoke(
        command.app, ["issue", "--label", "bob", "--stage", "production"]
    )

    assert done.stdout.startswith("animal_live_"), done.output
    assert keys.all()[0].label == "bob"


def test_stage_without_a_region_says_what_to_set(
    keys: KeyTable,  # noqa: ARG001 - nothing may reach AWS
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")

    done = CliRunner().invoke(command.app, ["list", "--stage", "staging"])

    assert done.exit_code == 1
    assert "Set AWS_DEFAULT_REGION to the region of the stage" in done.output


@pytest.mark.parametrize(
    "arguments", [["list"], ["revoke", HASH], ["revoke", "\x1b[2J"]]
)
def test_nothing_in_the_table_steers_the_terminal(
    arguments: list[str], run: RunCommand, keys: KeyTable
) -> None:
    keys.put(
        KeyRecord(
            HASH, "\x1b[2J\u202e\x9b[red]bob", created=1, issuedBy="\x1b]0;eve\x07"
        )
    )

    printed = run(*arguments, status=int("\x1b[2J" in arguments))

    assert printed.replace("\n", "").isprintable()
