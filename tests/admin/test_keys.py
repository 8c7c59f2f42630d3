"""API keys: how they are issued, listed and revoked, in the embedded store."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from animal_store import api_key as api_keys
from botocore.exceptions import ClientError

from tests.support.aws import OUTPUTS, Aws
from tests.support.handlers import API_KEYS, client, empty_store
from tools.admin import keys as command
from tools.deployment.stage import Stage
from tools.key_table import KeyAdministrationError, KeyRecord, KeyTable
from tools.local.events import EXAMPLE_KEY

HASH = "a" * 64
EXAMPLE_HASH = api_keys.digest(EXAMPLE_KEY)
ARN = "arn:aws:sts::123456789012:user/alice"


def one_at_a_time(params: Any, **_: object) -> Any:
    return params | {"Limit": 1}


@pytest.fixture
def keys() -> Iterator[KeyTable]:
    """Open a table of keys, which has the example key; alice administers it."""
    empty_store()
    scan, events = "provide-client-params.dynamodb.Scan", client().meta.events
    events.register(scan, one_at_a_time)
    yield KeyTable(client(), API_KEYS, lambda: ARN)
    events.unregister(scan, one_at_a_time)


def test_issued_key_is_stored_as_its_hash_alone(keys: KeyTable) -> None:
    key, record = keys.issue("mobile app (team blue)", "live", expires=4_000_000_000)

    assert keys.all()[-1] == record
    assert (record.hash, record.issuedBy) == (api_keys.digest(key), ARN)
    assert key not in str(keys.dynamodb.scan(TableName=API_KEYS)["Items"])


def test_record_is_not_written_over(keys: KeyTable) -> None:
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        keys.put(KeyRecord(EXAMPLE_HASH, "eve", created=2))


@pytest.mark.parametrize("ended", [{"expires": 2}, {"revoked": 2}])
def test_label_of_an_invalid_key_can_be_used_again(ended: Any, keys: KeyTable) -> None:
    keys.put(KeyRecord(HASH, "bob", 1, **ended))

    assert keys.issue("bob", "test")[1].label == "bob"


def test_of_two_keys_issued_at_once_one_stays_valid(keys: KeyTable) -> None:
    class Slow(KeyTable):
        def put(self, record: KeyRecord) -> None:
            keys.put(KeyRecord(HASH, "bob", created=1))
            keys.put(record)

    with pytest.raises(KeyAdministrationError, match="valid key aaaaaaaaaaaa"):
        Slow(client(), API_KEYS).issue("bob", "test")

    other, _, own = keys.all()
    assert (other.hash, other.revoked) == (HASH, None)
    assert own.revoked


class Interrupted(KeyTable):
    """Ctrl-C, once a record is written and before the answer; then nothing can be read."""

    is_written = False

    def put(self, record: KeyRecord) -> None:
        KeyTable.put(self, record)
        Interrupted.is_written = True
        raise KeyboardInterrupt

    def all(self) -> list[KeyRecord]:
        if self.is_written:
            raise TimeoutError
        return KeyTable.all(self)


@pytest.mark.parametrize("kind", [KeyTable, Interrupted])
def test_a_key_that_nobody_has_seen_is_taken_back(
    kind: type[KeyTable], keys: KeyTable
) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kind(client(), API_KEYS).issue("bob", "test", show=interrupt)

    assert keys.all()[-1].revoked


def test_a_key_that_cannot_be_stored_says_why_and_is_not_there(keys: KeyTable) -> None:
    class Unreachable(KeyTable):
        def put(self, _: KeyRecord) -> None:
            raise ConnectionError("no route to DynamoDB")

    before = keys.all()
    with pytest.raises(ConnectionError, match="no route"):
        Unreachable(client(), API_KEYS).issue("bob", "test")

    assert keys.all() == before


@pytest.mark.parametrize("label", ["", " a", "a" * 65, "é", "\x1b[31m", "tests"])
def test_label_is_refused_before_a_key_is_stored(label: str, keys: KeyTable) -> None:
    with pytest.raises(KeyAdministrationError, match=r"--label|the valid key"):
        keys.issue(label, "test")
    assert len(keys.all()) == 1


@pytest.mark.parametrize("name", [EXAMPLE_KEY, EXAMPLE_HASH, EXAMPLE_HASH[:12]])
def test_key_is_revoked_by_itself_and_by_its_id(name: str, keys: KeyTable) -> None:
    keys.put(KeyRecord(HASH, "bob", created=1))

    assert keys.revoke(name).hash == EXAMPLE_HASH

    bob, example = keys.all()
    assert (bob.revoked, bob.revokedBy) == (None, None)
    assert example.revoked
    assert example.revokedBy == ARN


def test_second_revocation_changes_nothing(keys: KeyTable) -> None:
    first = KeyRecord(HASH, "bob", created=1, revoked=2, revokedBy="carol")
    keys.put(first)

    assert keys.revoke(HASH) == first


@pytest.mark.parametrize("name", ["bbbbbbbbbbbb", EXAMPLE_HASH[:11], "animal_test_x"])
def test_unknown_key_cannot_be_revoked(name: str, keys: KeyTable) -> None:
    with pytest.raises(KeyAdministrationError, match="0 keys have this id"):
        keys.revoke(name)


def test_of_two_keys_with_one_id_neither_is_revoked(keys: KeyTable) -> None:
    keys.put(KeyRecord("b" * 64, "bob", created=1))
    keys.put(KeyRecord("b" * 63 + "c", "carol", created=2))

    with pytest.raises(KeyAdministrationError, match="2 keys have this id"):
        keys.revoke("b" * 12)


def test_record_of_a_newer_version_can_be_read(keys: KeyTable) -> None:
    item = {"hash": {"S": HASH}, "label": {"S": "bob"}, "created": {"N": "1"}}
    keys.dynamodb.put_item(TableName=API_KEYS, Item={**item, "newer": {"S": "?"}})

    assert keys.all()[0] == KeyRecord(HASH, "bob", 1, None, None, None, None)


@pytest.fixture
def stage() -> Stage:
    """Make a stage whose stack has the table."""
    aws = Aws(str)
    aws.stack = {"Outputs": OUTPUTS}
    return aws.stage


def test_only_a_production_key_is_live_and_each_expires_and_is_shown_once(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    command.issue(label="bob", stage=stage)
    printed, announced = capsys.readouterr()
    key = printed.strip()
    command.revoke(key, stage=stage)
    capsys.readouterr()
    command.list_(stage=stage, as_json=True)
    listed = capsys.readouterr().out

    assert key.startswith("animal_live_")
    assert announced.startswith("production: account 123456789012, eu-central-1, as ")
    bob = json.loads(listed)[-1]
    assert bob["expires"] - bob["created"] == pytest.approx(365 * 86_400, abs=5)
    assert bob["issuedBy"] == bob["revokedBy"] == "arn:aws:iam::123456789012:eve"
    assert (bob["state"], bob["id"]) == ("revoked", bob["hash"][:12])
    assert f"\nShown only once. Id {bob['id']}, expires 20" in announced
    assert key not in listed

    command.issue(label="bob", stage=replace(stage, name="staging"))
    assert capsys.readouterr().out.startswith("animal_test_")


def test_a_key_that_could_not_be_printed_is_taken_back(
    stage: Stage, keys: KeyTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.echo", Mock(side_effect=BrokenPipeError))

    with pytest.raises(BrokenPipeError):
        command.issue(label="bob", stage=stage)

    assert keys.all()[-1].revoked


def test_stage_without_a_region_says_what_to_set() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools", "keys", "list", "--stage", "staging"],
        env={"AWS_CONFIG_FILE": os.devnull},
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert done.stderr == "Set AWS_DEFAULT_REGION to the region of the stage.\n"


LISTED = f"""\
Id            Created (UTC)     Expires           State    Label                 Issued by
aaaaaaaaaaaa  1970-01-01 00:00  2096-10-02 07:06  active   \\x1b[2J\\u202e                 \\x07
bbbbbbbbbbbb  1970-01-01 00:00  1970-01-01 00:00  expired  old                   -
{EXAMPLE_HASH[:12]}  2025-12-05 00:00  never             active   tests                 -
Revoked aaaaaaaaaaaa (\\x1b[2J\\u202e).
"""


def test_list_is_this_table_in_which_nothing_steers_the_terminal(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    record = KeyRecord(HASH, "\x1b[2J\u202e", 1, 4_000_000_000, issuedBy="\x07")
    for each in (record, KeyRecord("b" * 64, "old", 2, 3)):
        KeyTable(client(), API_KEYS).put(each)

    command.list_(stage=stage)
    command.revoke(HASH, stage=stage)

    assert capsys.readouterr().out == LISTED
