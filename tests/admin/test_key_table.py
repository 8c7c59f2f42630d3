"""Administration of API keys, on moto."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from animal_store import api_key as api_keys
from botocore.exceptions import ClientError

from tools.admin import key_table
from tools.admin.key_table import KeyAdministrationError, KeyRecord, KeyTable
from tools.local import template

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAME = f"{template.STACK_NAME}-ApiKeysTable"


@pytest.fixture
def keys(tables: "DynamoDBClient") -> KeyTable:
    return KeyTable(tables, NAME, lambda: "alice")


def valid_with(keys: KeyTable, label: str) -> list[KeyRecord]:
    return [record for record in keys.all() if record.label == label and record.state(time.time()) == "active"]


def test_issued_key_is_stored_as_its_hash_alone(keys: KeyTable) -> None:
    key, record = keys.issue("bob", "live", expires=1_900_000_000)

    assert key.startswith("animal_live_")
    assert api_keys.is_well_formed(key)
    assert record.hash == api_keys.digest(key)
    items = keys.dynamodb.scan(TableName=NAME)["Items"]
    assert items == [
        {
            "hash": {"S": record.hash},
            "label": {"S": "bob"},
            "created": {"N": str(record.created)},
            "expires": {"N": "1900000000"},
            "issuedBy": {"S": "alice"},
        }
    ]


def test_a_record_is_never_written_over(keys: KeyTable) -> None:
    _, record = keys.issue("bob", "test")

    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        keys.put(KeyRecord(record.hash, "eve", 0))


@pytest.mark.parametrize("times", [{}, {"expires": 9_999_999_999}])
def test_label_of_a_valid_key_is_not_given_again(keys: KeyTable, times: Any) -> None:
    keys.put(KeyRecord("a" * 64, "bob", 1, **times))

    with pytest.raises(KeyAdministrationError, match="belongs to the valid key aaaaaaaaaaaa"):
        keys.issue("bob", "test")

    assert [record.hash for record in keys.all()] == ["a" * 64]


@pytest.mark.parametrize("times", [{"expires": 2}, {"revoked": 2}])
def test_label_of_a_key_that_is_no_longer_valid_is_free(keys: KeyTable, times: Any) -> None:
    keys.put(KeyRecord("a" * 64, "bob", 1, **times))

    _, record = keys.issue("bob", "test")

    assert valid_with(keys, "bob") == [record]


def test_label_may_be_shared_where_that_is_asked_for(keys: KeyTable) -> None:
    for _ in range(2):
        keys.issue("local", "test", shared_label=True)

    assert len(valid_with(keys, "local")) == 2


def test_of_two_issued_at_once_one_stays(keys: KeyTable, monkeypatch: pytest.MonkeyPatch) -> None:
    other, put = KeyTable(keys.dynamodb, NAME, lambda: "eve"), KeyTable.put

    def put_late(table: KeyTable, record: KeyRecord) -> None:
        monkeypatch.setattr(KeyTable, "put", put)
        other.issue("bob", "test")
        put(table, record)

    monkeypatch.setattr(KeyTable, "put", put_late)  # both have found the label free by then
    with pytest.raises(KeyAdministrationError, match="belongs to the valid key"):
        keys.issue("bob", "test")

    (record,) = valid_with(keys, "bob")
    assert record.issuedBy == "eve"


def test_list_is_in_order_of_creation_and_complete(keys: KeyTable) -> None:
    for number in (3, 1, 2):
        keys.put(KeyRecord(f"{number:064x}", f"key {number}", created=number))

    assert [record.label for record in keys.all()] == ["key 1", "key 2", "key 3"]


@pytest.mark.parametrize("form", ["key", "id", "hash", "short", "capitals"])
def test_revoke_by(keys: KeyTable, form: str) -> None:
    key, record = keys.issue("bob", "test")
    _, other = keys.issue("eve", "test")
    forms = {
        "key": key,
        "id": record.id,
        "hash": record.hash,
        "short": record.hash[:8],
        "capitals": record.id.upper(),
    }

    revoked = KeyTable(keys.dynamodb, NAME, lambda: "carol").revoke(forms[form])

    assert revoked.state(revoked.created) == "revoked"
    assert (revoked.issuedBy, revoked.revokedBy) == ("alice", "carol")
    assert keys.get(record.hash) == revoked
    assert keys.get(other.hash) == other


def test_revoked_stays_as_it_was(keys: KeyTable) -> None:
    _, record = keys.issue("bob", "test")
    first = keys.revoke(record.id)

    again = KeyTable(keys.dynamodb, NAME, lambda: "eve").revoke(record.id)

    assert again == first == keys.get(record.hash)


@pytest.mark.parametrize(
    ("identifier", "message"),
    [
        ("aaaaaaaa", "2 keys begin with this id"),
        ("bbbbbbbb", "No key has this id"),
        ("aaaa", "at least 8 characters"),
        ("animal_test_wrong", "at least 8 characters"),
        (api_keys.generate("test"), "No key has this id"),
    ],
    ids=["ambiguous", "unknown id", "short", "malformed key", "unknown key"],
)
def test_revoke_refuses(keys: KeyTable, identifier: str, message: str) -> None:
    keys.put(KeyRecord("a" * 63 + "1", "bob", created=1))
    keys.put(KeyRecord("a" * 63 + "2", "eve", created=1))

    with pytest.raises(KeyAdministrationError, match=message):
        keys.revoke(identifier)

    assert [record.revoked for record in keys.all()] == [None, None]


@pytest.mark.parametrize(
    ("record", "state"),
    [
        (KeyRecord("h", "l", 1), "active"),
        (KeyRecord("h", "l", 1, expires=101), "active"),
        (KeyRecord("h", "l", 1, expires=100), "expired"),
        (KeyRecord("h", "l", 1, expires=100, revoked=50), "revoked"),
    ],
)
def test_state(record: KeyRecord, state: str) -> None:
    assert record.state(100) == state


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90d", datetime(2027, 2, 19, 12, tzinfo=UTC)),
        ("1d", datetime(2026, 11, 22, 12, tzinfo=UTC)),
        ("2027-01-31", datetime(2027, 2, 1, tzinfo=UTC)),
        ("2026-11-21", datetime(2026, 11, 22, tzinfo=UTC)),
    ],
)
def test_expiry(text: str, expected: datetime) -> None:
    assert key_table.parse_expiry(text, NOW) == expected.timestamp()


def test_no_expiry() -> None:
    assert key_table.parse_expiry("never", NOW) is None


@pytest.mark.parametrize("text", ["2026-11-20", "0d", "-1d", "90", "tomorrow", "2027-02-30", "9999-12-31", ""])
def test_expiry_that_is_none(text: str) -> None:
    with pytest.raises(KeyAdministrationError, match="--expires"):
        key_table.parse_expiry(text, NOW)


@pytest.mark.parametrize("label", ["", "  ", "a" * 65, "a\nb", "é", "\x1b[31m"])
def test_label_that_is_refused(label: str) -> None:
    with pytest.raises(KeyAdministrationError, match="--label"):
        key_table.check_label(label)


def test_label() -> None:
    assert key_table.check_label("mobile app (team blue)") == "mobile app (team blue)"
