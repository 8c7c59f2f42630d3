"""The table of API keys, as its administrator sees it: issue, list, revoke. The functions may only look a key up."""

import getpass
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from animal_store import api_key

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_dynamodb.type_defs import AttributeValueTypeDef

Environment = Literal["live", "test"]

_ID = re.compile(r"[0-9a-f]{8,64}")
_MAX_LABEL = 64
_DAY_S = 24 * 60 * 60


class KeyAdministrationError(Exception):
    """A key cannot be issued, listed or revoked; the message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What is stored of a key; times are seconds since 1970.

    Args:
        hash: SHA-256 of the key, in hexadecimal; its beginning serves as the key's id.
        label: Whose it is.
        created: When it was issued.
        expires: From when on it is refused, if ever.
        revoked: When it was revoked, if it was.
        issuedBy: Who issued it.
        revokedBy: Who revoked it.
    """

    hash: str
    label: str
    created: int
    expires: int | None = None
    revoked: int | None = None
    issuedBy: str | None = None
    revokedBy: str | None = None

    @property
    def id(self) -> str:
        """What people call the key by."""
        return self.hash[: api_key.ID_LENGTH]

    def state(self, now: float) -> str:
        """Tell whether the key is accepted."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "active"


def local_user() -> str:
    """Name the person at this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for the user
        return f"uid {os.getuid()}"


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The table of keys.

    Args:
        dynamodb: A client.
        name: The table's name.
        who: Names the person who issues and revokes, for the record.
    """

    dynamodb: "DynamoDBClient"
    name: str
    who: Callable[[], str] = local_user

    def put(self, record: KeyRecord) -> None:
        """Store a new key's record."""
        item: dict[str, AttributeValueTypeDef] = {"hash": {"S": record.hash}, "label": {"S": record.label}}
        for attribute in ("created", "expires", "revoked"):
            value = getattr(record, attribute)
            if value is not None:
                item[attribute] = {"N": str(value)}
        if record.issuedBy:
            item["issuedBy"] = {"S": record.issuedBy}
        self.dynamodb.put_item(
            TableName=self.name,
            Item=item,
            ConditionExpression="attribute_not_exists(#hash)",
            ExpressionAttributeNames={"#hash": "hash"},
        )

    def get(self, digest: str) -> KeyRecord | None:
        """Read one record."""
        answer = self.dynamodb.get_item(TableName=self.name, Key={"hash": {"S": digest}}, ConsistentRead=True)
        return _record(answer["Item"]) if "Item" in answer else None

    def all(self) -> list[KeyRecord]:
        """Read every record, the oldest first."""
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=self.name, ConsistentRead=True)
        records = [_record(item) for page in pages for item in page["Items"]]
        return sorted(records, key=lambda record: (record.created, record.hash))

    def issue(
        self, label: str, environment: Environment, expires: int | None = None, *, shared_label: bool = False
    ) -> tuple[str, KeyRecord]:
        """Make a key and store its hash; return the key, which is nowhere else, and its record.

        Of two keys that are issued under one label at the same moment, at most one stays valid: each issuer looks again
        after writing its own record, so the later one sees the earlier. Nobody has seen a key that is taken back.

        Args:
            label: Whose it is.
            environment: What the key's prefix says.
            expires: From when on it is refused, in seconds since 1970.
            shared_label: Whether other valid keys may have the label.

        Raises:
            KeyAdministrationError: A valid key has the label.
        """
        key = api_key.generate(environment)
        record = KeyRecord(api_key.digest(key), label, int(time.time()), expires, issuedBy=self.who())
        if shared_label:
            self.put(record)
            return key, record
        self._require_free_label(record)
        self.put(record)
        try:
            self._require_free_label(record)
        except BaseException:  # an interruption too: nobody has seen the key
            self._revoke(record.hash)
            raise
        return key, record

    def _require_free_label(self, record: KeyRecord) -> None:
        for other in self.all():
            if other.label == record.label and other.hash != record.hash and other.state(time.time()) == "active":
                raise KeyAdministrationError(
                    f"The label {record.label!r} belongs to the valid key {other.id}: take another, or revoke that key."
                )

    def revoke(self, identifier: str) -> KeyRecord:
        """Revoke a key; one that is revoked already stays as it was.

        Args:
            identifier: The key's id as `list` shows it (8 characters of the hash are enough), or the key itself.

        Raises:
            KeyAdministrationError: No key has that id, or more than one.
        """
        prefix = api_key.digest(identifier) if api_key.is_well_formed(identifier) else identifier.lower()
        if not _ID.fullmatch(prefix):
            raise KeyAdministrationError(
                "Give the key's id (at least 8 characters, as `keys list` shows it) or the key itself."
            )
        found = [record for record in self.all() if record.hash.startswith(prefix)]
        if len(found) != 1:
            raise KeyAdministrationError(
                "No key has this id." if not found else f"{len(found)} keys begin with this id: give more."
            )
        if found[0].revoked is not None:
            return found[0]
        return self._revoke(found[0].hash)

    def _revoke(self, digest: str) -> KeyRecord:
        answer = self.dynamodb.update_item(
            TableName=self.name,
            Key={"hash": {"S": digest}},
            UpdateExpression="SET revoked = if_not_exists(revoked, :now), revokedBy = if_not_exists(revokedBy, :who)",
            ConditionExpression="attribute_exists(#hash)",
            ExpressionAttributeNames={"#hash": "hash"},
            ExpressionAttributeValues={":now": {"N": str(int(time.time()))}, ":who": {"S": self.who()}},
            ReturnValues="ALL_NEW",
        )
        return _record(answer["Attributes"])


def _record(item: Any) -> KeyRecord:
    """Read a record. A time that is there and cannot be read is taken for long ago: one bad record hides no other."""

    def number(name: str) -> int | None:
        text = item.get(name, {"N": None}).get("N", "0")
        return text and (int(text) if text.isdecimal() else 0)

    def text(name: str) -> str | None:
        return str(item[name].get("S", "?")) if name in item else None

    return KeyRecord(
        item["hash"]["S"],
        text("label") or "?",
        number("created") or 0,
        number("expires"),
        number("revoked"),
        text("issuedBy"),
        text("revokedBy"),
    )


def parse_expiry(text: str, now: datetime) -> int | None:
    """Read when a key expires, in seconds since 1970; None for `never`.

    Args:
        text: A date (`2027-01-31`: the key works through that day, UTC), a number of days from now (`90d`), or `never`.
        now: With a time zone.

    Raises:
        KeyAdministrationError: It is none of these, or is past.
    """
    if text == "never":
        return None
    if re.fullmatch(r"[1-9][0-9]{0,4}d", text):
        return int(now.timestamp()) + int(text[:-1]) * _DAY_S
    try:
        day = date.fromisoformat(text)
        end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError) as error:
        raise KeyAdministrationError(
            f"--expires {text!r}: give a date such as 2027-01-31, days such as 90d, or never."
        ) from error
    if end <= now:
        raise KeyAdministrationError(f"--expires {text} is past.")
    return int(end.timestamp())


def check_label(label: str) -> str:
    """Refuse a label that could not stand in a log line or a metric's dimension."""
    if not label or label != label.strip() or len(label) > _MAX_LABEL or not label.isprintable() or not label.isascii():
        raise KeyAdministrationError(
            f"--label: 1 to {_MAX_LABEL} printable ASCII characters, none of them a space at either end."
        )
    return label
