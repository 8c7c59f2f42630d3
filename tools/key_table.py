"""Issues, lists and revokes API keys in their DynamoDB table."""

import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from animal_store import api_key

from tools import CommandError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Environment = Literal["live", "test"]
"""The second word of a key: "live" for clients of production, "test" for anything else."""

EXAMPLE_KEY = "animal_test_AnExampleKeyThatOpensNothingHere0iR7H8"
"""The key in most files of `events/`; no stage knows it."""


def generate(environment: Environment) -> str:
    """Make a new key from the system's source of randomness."""
    random = "".join(
        secrets.choice(api_key.ALPHABET) for _ in range(api_key.RANDOM_LENGTH)
    )
    return f"animal_{environment}_{random}{api_key.checksum(random)}"


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """The record of an API key; times are in seconds since 1970."""

    hash: str  # SHA-256 of the key, in hexadecimal
    label: str
    created: int
    expires: int | None = None
    revoked: int | None = None
    issuedBy: str | None = None
    revokedBy: str | None = None

    @property
    def id(self) -> str:
        """The key's short id, which lists and logs show."""
        # Somebody may have written control characters into a record: `ascii` escapes them.
        return ascii(self.hash[: api_key.ID_LENGTH])[1:-1]

    @property
    def state(self) -> Literal["revoked", "expired", "active"]:
        """The key's state."""
        if self.revoked is not None:
            return "revoked"
        if self.expires is not None and self.expires <= time.time():
            return "expired"
        return "active"


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The table of API keys.

    A key's record says who issued or revoked the key: the name that `actor` returned.
    """

    dynamodb: "DynamoDBClient"
    name: str
    actor: Callable[[], str]

    def put(self, record: KeyRecord) -> None:
        """Store a new key's record."""
        self.dynamodb.put_item(
            TableName=self.name,
            Item={
                name: {"N": str(value)} if isinstance(value, int) else {"S": value}
                for name, value in asdict(record).items()
                if value is not None
            },
        )

    def all(self) -> list[KeyRecord]:
        """Return every record, oldest first."""
        pages = self.dynamodb.get_paginator("scan").paginate(
            TableName=self.name, ConsistentRead=True
        )
        return sorted(map(_record, pages.search("Items")), key=attrgetter("created"))

    def issue(
        self,
        label: str,
        environment: Environment,
        expires: int | None = None,
        *,
        is_check: bool = False,
    ) -> tuple[str, KeyRecord]:
        """Issue a key and store its record. Return the key, which is not stored, and the record.

        Args:
            label: The name of the key's owner. Several keys may have the same label.
            environment: The second word of the key, as in `animal_test_...`.
            expires: When the key expires, in seconds since 1970.
            is_check: Whether the key is for the contract suite. The hash of such a key begins with
                `api_key.CHECK_HASH_PREFIX`.
        """
        if not re.fullmatch(r"[!-~]([ -~]{0,62}[!-~])?", label):
            raise CommandError(
                "--label: 1 to 64 printable ASCII characters, no space at either end."
            )
        key = generate(environment)
        while api_key.digest(key).startswith(api_key.CHECK_HASH_PREFIX) != is_check:
            key = generate(environment)
        record = KeyRecord(
            api_key.digest(key),
            label,
            created=int(time.time()),
            expires=expires,
            issuedBy=self.actor(),
        )
        self.put(record)
        return key, record

    def revoke(self, identifier: str) -> KeyRecord:
        """Revoke a key for good, given the key or its id; return the record as it was before."""
        if api_key.is_well_formed(identifier):
            identifier = api_key.digest(identifier)
        records = [
            record for record in self.all() if identifier in {record.id, record.hash}
        ]
        if len(records) != 1:
            raise CommandError(
                f"{len(records)} keys match: give the key, or its id from `list`."
            )
        (record,) = records
        # Do not overwrite an earlier revocation, not even that of a simultaneous call.
        with suppress(self.dynamodb.exceptions.ConditionalCheckFailedException):
            self.dynamodb.update_item(
                TableName=self.name,
                Key={"hash": {"S": record.hash}},
                UpdateExpression="SET revoked = :now, revokedBy = :actor",
                ConditionExpression="attribute_not_exists(revoked)",
                ExpressionAttributeValues={
                    ":now": {"N": str(int(time.time()))},
                    ":actor": {"S": self.actor()},
                },
            )
        return record


def _record(item: Any) -> KeyRecord:
    """Return an item's record, without attributes that newer code may have added."""
    values: dict[str, Any] = {}
    for name in KeyRecord.__annotations__.keys() & item:
        value = item[name]
        values[name] = int(value["N"]) if "N" in value else value["S"]
    return KeyRecord(**values)
