"""API keys: how they are issued, listed and revoked, in the embedded store."""

import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from animal_store import api_key as api_keys

from ops import keys as command
from tests.support.handlers import API_KEYS, client, empty_store
from tools.key_table import EXAMPLE_KEY, KeyAdministrationError, KeyRecord, KeyTable

EXAMPLE_HASH = api_keys.digest(EXAMPLE_KEY)
ARN = "arn:aws:sts::123456789012:user/alice"
BOB = KeyRecord("a" * 64, "bob", created=1)


@pytest.fixture
def keys() -> KeyTable:
    """Open a table of keys, which has the example key; alice administers it."""
    empty_store()
    return KeyTable(client(), API_KEYS, lambda: ARN)


@pytest.fixture
def stage(keys: KeyTable) -> Any:
    """Make a stage whose stack has the table."""
    return SimpleNamespace(
        name="production",
        keys=lambda: keys,
    )


def test_issued_key_is_stored_as_its_hash_alone(keys: KeyTable) -> None:
    key, record = keys.issue("mobile app (team blue)", "live", expires=4_000_000_000)

    assert keys.all()[-1] == record
    assert (record.hash, record.issuedBy) == (api_keys.digest(key), ARN)
    assert key not in str(keys.dynamodb.scan(TableName=API_KEYS)["Items"])


@pytest.mark.parametrize("label", [" a", "a" * 65, "\x1b[31m", "tests"])
def test_refused_label_leaves_no_key(label: str, keys: KeyTable) -> None:
    with pytest.raises(KeyAdministrationError, match=r"--label|the valid key"):
        keys.issue(label, "test")
    assert len(keys.all()) == 1


def test_label_that_another_key_got_at_the_same_moment_is_refused(
    keys: KeyTable,
) -> None:
    def issue_another() -> str:
        keys.put(BOB)
        return ARN

    with pytest.raises(KeyAdministrationError, match=BOB.id):
        replace(keys, who=issue_another).issue("bob", "test")
    assert [key.label for key in keys.all()] == ["bob", "tests"]


def test_only_hashes_of_keys_for_checks_begin_with_00(
    keys: KeyTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for_check, record = keys.issue("check", "test", is_check=True)
    assert record.id.startswith("00")
    keys.issue("check", "test", is_check=True)  # while the other is valid

    drawn = Mock(side_effect=[for_check, "animal_test_another"])
    monkeypatch.setattr(api_keys, "generate", drawn)
    assert keys.issue("bob", "test")[0] == "animal_test_another"


@pytest.mark.parametrize("name", [EXAMPLE_KEY, EXAMPLE_HASH[:12]])
def test_key_is_revoked_by_itself_and_by_its_id(name: str, keys: KeyTable) -> None:
    keys.put(BOB)

    assert keys.revoke(name).hash == EXAMPLE_HASH

    bob, example = keys.all()
    assert bob == BOB
    assert (example.state, example.revokedBy) == ("revoked", ARN)
    keys.issue(example.label, "test")


def test_second_revocation_changes_nothing(keys: KeyTable) -> None:
    first = replace(BOB, revoked=2, revokedBy="carol")
    keys.put(first)

    assert keys.revoke(first.id) == first


@pytest.mark.parametrize("name", ["bob", "a" * 11, "animal_test_x", "b" * 12])
def test_what_names_no_key_is_refused(name: str, keys: KeyTable) -> None:
    keys.put(BOB)
    with pytest.raises(KeyAdministrationError, match="`list`"):
        keys.revoke(name)


def test_only_a_production_key_is_live_and_each_expires(
    stage: Any, keys: KeyTable, capsys: pytest.CaptureFixture[str]
) -> None:
    command.issue(label="bob", stage=stage)
    bob = keys.all()[-1]
    assert capsys.readouterr().out.startswith("animal_live_")
    assert (bob.expires or 0) - bob.created == pytest.approx(365 * 86_400, abs=5)

    stage.name = "staging"
    command.issue(label="carol", stage=stage)
    assert capsys.readouterr().out.startswith("animal_test_")


@pytest.fixture
def kathmandu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be in a time zone that is not UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        yield
    time.tzset()


EXPECTED_LISTING = f"""\
Id            Created           Expires           State    Label
aaaaaaaaaaaa  1970-01-01 00:00  1970-01-01 00:00  expired  \\x1b[2J\\u202e                 \
issued by \\x07
{EXAMPLE_HASH[:12]}  2025-12-05 00:00  never             active   tests                 \
issued by nobody named
Revoked aaaaaaaaaaaa (\\x1b[2J\\u202e).
"""


def test_list_is_in_utc_and_steers_no_terminal(
    stage: Any,
    keys: KeyTable,
    capsys: pytest.CaptureFixture[str],
    kathmandu: None,  # noqa: ARG001
) -> None:
    keys.put(replace(BOB, label="\x1b[2J\u202e", expires=2, issuedBy="\x07"))

    command.list_(stage=stage)
    command.revoke(BOB.id, stage=stage)

    assert capsys.readouterr().out == EXPECTED_LISTING


def test_expired_keys_of_checks_are_not_listed(
    stage: Any, keys: KeyTable, capsys: pytest.CaptureFixture[str]
) -> None:
    keys.put(KeyRecord("00" + "a" * 62, "check", created=1, expires=2))
    keys.put(KeyRecord("00" + "b" * 62, "check", created=1))

    command.list_(stage=stage)

    ids = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert ids == ["Id", "00bbbbbbbbbb", EXAMPLE_HASH[:12]]
