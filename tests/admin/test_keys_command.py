"""The command for API keys: who is written down, when keys expire, and what reaches the terminal."""

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from tools.admin import keys
from tools.admin.key_table import KeyRecord, KeyTable, local_user
from tools.local import template

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

NAME = f"{template.STACK_NAME}-ApiKeysTable"
DAY = 24 * 60 * 60

Run = Callable[..., str]


@pytest.fixture
def run(tables: "DynamoDBClient", monkeypatch: pytest.MonkeyPatch) -> Run:  # noqa: ARG001 - they must be there
    """Give what runs the command on the table, as wide as it likes."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, status: int = 0) -> str:
        done = CliRunner().invoke(keys.app, [*arguments, "--table", NAME])
        assert done.exit_code == status, done.output
        return done.output

    return run


def issue(run: Run, *options: str) -> dict[str, Any]:
    issued: dict[str, Any] = json.loads(run("issue", "--label", "bob", "--json", *options))
    return issued


def test_key_expires_in_a_year(run: Run) -> None:
    assert issue(run)["expires"] == pytest.approx(time.time() + 365 * DAY, abs=60)


def test_key_never_expires_when_asked_not_to(run: Run) -> None:
    assert issue(run, "--expires", "never")["expires"] is None


def test_records_say_by_arn_who_issued_and_revoked_on_aws(run: Run) -> None:
    issued = issue(run)
    revoked = json.loads(run("revoke", issued["id"], "--json"))

    assert issued["issuedBy"] == revoked["revokedBy"] == "arn:aws:sts::123456789012:user/moto"


def test_records_name_the_user_of_this_machine_beside_another_dynamodb(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "https://dynamodb.us-east-1.amazonaws.com")

    assert issue(run)["issuedBy"] == local_user()


def test_list_shows_each_key(run: Run) -> None:
    issued = issue(run, "--expires", "2099-12-30")

    output = run("list")

    for shown in (issued["id"], " bob ", "2099-12-31 00:00", "active", "user/moto"):
        assert shown in output


def test_nothing_in_the_table_steers_the_terminal(run: Run, tables: "DynamoDBClient") -> None:
    record = KeyRecord("a" * 64, "\x1b[2J\u202e\x9b[red]bob", created=1, issuedBy="\x1b]0;eve\x07")
    KeyTable(tables, NAME).put(record)

    for output in (run("list"), run("revoke", record.id), run("revoke", "\x1b[2J", status=1)):
        assert output.replace("\n", "").isprintable()
    assert "\\x1b[2J\\u202e\\x9b[red]bob" in run("list")
