"""API keys are issued, listed and revoked; the table of keys is in the embedded store."""

from dataclasses import replace
from unittest.mock import Mock

import pytest
from animal_store import api_key

from ops import keys as command
from ops.stage import Stage
from tests.support import handlers
from tools import CommandError
from tools.key_table import EXAMPLE_KEY, KeyRecord, KeyTable

EXAMPLE_ID = api_key.digest(EXAMPLE_KEY)[:12]
ARN = "arn:aws:sts::123456789012:user/alice"
BOBS_KEY = KeyRecord("a" * 64, "bob", created=1)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> KeyTable:
    """Give each stage a table that has only the example key; alice issues and revokes keys."""
    handlers.reset_store()
    table = replace(handlers.service().keys(), actor=lambda: ARN)
    monkeypatch.setattr(Stage, "keys", lambda _: table)
    return table


@pytest.mark.parametrize(
    ("stage", "prefix"), [("production", "animal_live_"), ("staging", "animal_test_")]
)
def test_only_the_hash_of_an_issued_key_is_stored(
    stage: str, prefix: str, keys: KeyTable, capsys: pytest.CaptureFixture[str]
) -> None:
    command.issue(label="mobile app (team blue)", stage=Stage(stage))

    key = capsys.readouterr().out.strip()
    assert key.startswith(prefix)
    record = keys.all()[-1]
    assert (record.hash, record.issuedBy) == (api_key.digest(key), ARN)
    assert (record.expires or 0) - record.created == pytest.approx(365 * 86_400, abs=5)
    assert key not in str(keys.dynamodb.scan(TableName=keys.name)["Items"])


@pytest.mark.parametrize("label", [" a", "a" * 65, "\x1b[31m"])
def test_key_with_invalid_label_is_not_issued(label: str, keys: KeyTable) -> None:
    with pytest.raises(CommandError):
        keys.issue(label, "test")
    assert len(keys.all()) == 1


def test_only_contract_suite_keys_have_hashes_that_begin_with_00(
    keys: KeyTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for_check, record = keys.issue("check", "test", is_check=True)
    assert record.id.startswith("00")

    generate = Mock(side_effect=[for_check, "animal_test_another"])
    monkeypatch.setattr("tools.key_table.generate", generate)
    assert keys.issue("bob", "test")[0] == "animal_test_another"


@pytest.mark.parametrize("identifier", [EXAMPLE_KEY, EXAMPLE_ID])
def test_revoke_accepts_the_key_itself_or_its_id(
    identifier: str, keys: KeyTable
) -> None:
    keys.put(BOBS_KEY)

    keys.revoke(identifier)

    bob, example = keys.all()
    assert bob == BOBS_KEY
    assert (example.state, example.revokedBy) == ("revoked", ARN)


def test_concurrent_revocation_is_not_overwritten(keys: KeyTable) -> None:
    revoked_by_carol = replace(BOBS_KEY, revoked=2, revokedBy="carol")

    def revoke_as_carol() -> str:
        keys.put(revoked_by_carol)
        return ARN

    keys.put(BOBS_KEY)
    replace(keys, actor=revoke_as_carol).revoke(BOBS_KEY.id)
    assert keys.all()[0] == revoked_by_carol


@pytest.mark.parametrize(
    ("identifier", "count"), [("a" * 11, 0), ("b" * 12, 0), ("a" * 12, 2)]
)
def test_revoke_is_refused_unless_exactly_one_key_matches(
    identifier: str, count: int, keys: KeyTable
) -> None:
    keys.put(BOBS_KEY)
    keys.put(replace(BOBS_KEY, hash="a" * 63 + "b"))
    with pytest.raises(CommandError, match=f"{count} keys match: .* from `list`"):
        keys.revoke(identifier)


EXPECTED_LISTING = f"""\
Id            Created           Expires           State    Label
aaaaaaaaaaaa  1970-01-01 00:00  1970-01-01 00:00  expired  '\\x1b[2J\\u202e'         \
issued by '\\x07'
00\\x07bbbbbbbbb  1970-01-01 00:00  never             revoked  'check'                 \
issued by None, revoked by 'me'
{EXAMPLE_ID}  2025-12-05 00:00  never             active   'tests'                 \
issued by None
"""


def test_list_escapes_labels_and_omits_some_expired_keys(
    keys: KeyTable, capsys: pytest.CaptureFixture[str]
) -> None:
    """An expired key of the contract suite is left out."""
    keys.put(replace(BOBS_KEY, label="\x1b[2J\u202e", expires=2, issuedBy="\x07"))
    keys.put(KeyRecord("00" + "a" * 62, "check", created=1, expires=2))
    keys.put(
        KeyRecord("00\x07" + "b" * 61, "check", created=3, revoked=4, revokedBy="me")
    )

    command.list_(stage=Stage("production"))

    assert capsys.readouterr().out == EXPECTED_LISTING
