"""Collections in DynamoDB: a list is one Query, a read one GetItem, a creation two writes.

Everything lives in one table, so that a backup holds animals, counter and records of one moment:

    pk                  id       what
    pet                 1, 2...  an animal; those with a status are in the index `by-status`, too
    counter             0        the last id given
    idempotency#<hash>  0        the id that was created with an Idempotency-Key
    repair              0        the moments of repairs (`make restore`); no function reads it
"""

from __future__ import annotations

import hashlib
import random
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from botocore.exceptions import ClientError
from pydantic_core import to_json

from animal_store import dynamodb, settings
from animal_store.errors import IdempotencyKeyReused, ServiceUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animal_store.auth import Caller
    from animal_store.validators import Validator

_IDEMPOTENCY_SECONDS = 24 * 60 * 60
_CONFLICT_ATTEMPTS = 6
_CONFLICT_SECONDS = 0.05
# Cancellation reasons of a transaction that may succeed when retried
# (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html).
_TRANSIENT_REASONS = frozenset(
    {"ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"}
)

Item = dict[str, dict[str, str]]
"""An item of the table in DynamoDB's own JSON."""


New = TypeVar("New", bound="Mapping[str, object]")
Stored = TypeVar("Stored")


@dataclass(frozen=True)
class Collection(Generic[New, Stored]):
    """The resources of one kind.

    Args:
        partition: The partition key of their items.
        counter: The partition key of the counter that gives them ids.
        query: Reads DynamoDB's response to a Query for them.
        item: Reads DynamoDB's response to a GetItem for one.
    """

    partition: str
    counter: str
    query: Validator[Any]
    item: Validator[Any]

    def page(
        self, limit: int, after: int, having: tuple[str, str] | None = None
    ) -> tuple[list[Stored], bool]:
        """List resources by ascending id.

        The whole list is strongly consistent. A filtered one comes from an index, which DynamoDB
        updates a moment after the table, and reads at most one more than it returns.

        Args:
            limit: The most resources to return, 1 to 100.
            after: Only resources with a greater id.
            having: An attribute with an index `by-<attribute>`, and its value; None for all.

        Returns:
            The resources, and whether more follow.

        Raises:
            ServiceUnavailable: The store does not answer.
        """
        attribute, value = having or ("pk", self.partition)
        source = {"IndexName": f"by-{attribute}"} if having else {"ConsistentRead": True}
        found = dynamodb.read(
            dynamodb.client.query,
            self.query,
            TableName=settings.ANIMALS_TABLE,
            KeyConditionExpression="#attribute = :partition AND id > :after",
            ExpressionAttributeNames={"#attribute": attribute},
            ExpressionAttributeValues={
                ":partition": {"S": value},
                ":after": {"N": str(after)},
            },
            # One more than asked for tells whether a page follows. 101 of the largest animals stay
            # far below the 1 MB at which DynamoDB itself cuts a page
            # (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html).
            Limit=limit + 1,
            **source,
        )["Items"]
        return found[:limit], len(found) > limit

    def get(self, number: int) -> Stored | None:
        """Read the resource with this id, strongly consistently; None if there is none.

        Raises:
            ServiceUnavailable: The store does not answer.
        """
        found = dynamodb.read(
            dynamodb.client.get_item,
            self.item,
            TableName=settings.ANIMALS_TABLE,
            Key=self._key(number),
            ConsistentRead=True,
        )
        return cast("Stored | None", found.get("Item"))

    def create(self, new: New, caller: Caller, idempotency_key: str | None) -> tuple[Stored, bool]:
        """Add a resource under an id of its own.

        With a key, the resource and the record of the key are written in one transaction: a crash
        at any point leaves both or neither. A retry finds the record through the transaction's own
        condition, at the price of a gap in the ids.

        Args:
            new: The resource.
            caller: Who adds it. The item records caller and time; no response contains either.
            idempotency_key: Creations of one caller with the same value are one creation; None if
                the client sent none.

        Returns:
            The resource, and whether an earlier request created it.

        Raises:
            IdempotencyKeyReused: The key was used with a different body.
            ServiceUnavailable: The store does not answer; the resource may or may not be there.
        """
        number = self._next_id()
        item = self._key(number) | _attributes(new)
        item["createdBy"] = {"S": caller.key_id}
        item["createdAt"] = {"N": str(int(time.time()))}
        first = number
        if idempotency_key is None:
            _put(item)
        else:
            scope = f"{caller.key_hash}#{self.partition}#{idempotency_key}"
            first = _put_once(item, new, hashlib.sha256(scope.encode()).hexdigest())
        # A key's first creation had the same body, so only the id may differ.
        return cast("Stored", {"id": first, **new}), first != number

    def _next_id(self) -> int:
        """Take the next id: unique, ascending; a lost response leaves a gap."""
        counter = _update(
            Key={"pk": {"S": self.counter}, "id": {"N": "0"}},
            UpdateExpression="ADD #value :one",
            ExpressionAttributeNames={"#value": "value"},
            ExpressionAttributeValues={":one": {"N": "1"}},
            ReturnValues="UPDATED_NEW",
        )
        return int(counter["value"]["N"])

    def _key(self, number: int) -> Item:
        return {"pk": {"S": self.partition}, "id": {"N": str(number)}}


def _attributes(resource: Mapping[str, object]) -> Item:
    """Write members as DynamoDB's JSON: the reverse of the aliases in `models`."""
    return {
        name: {"N": str(value)} if isinstance(value, int) else {"S": str(value)}
        for name, value in resource.items()
    }


def _update(**parameters: Any) -> Item:
    """Update an item; return the attributes that `ReturnValues` asks for."""
    response = dynamodb.call(
        dynamodb.client.update_item, TableName=settings.ANIMALS_TABLE, **parameters
    )
    if "Attributes" not in response:
        # The SDK returns an empty response for a body that is not JSON.
        raise ServiceUnavailable from ValueError("the store's response is truncated or corrupt")
    attributes: Item = response["Attributes"]
    return attributes


def _put(item: Item) -> None:
    """Write an item under an unused id.

    When the response to the write is lost, the SDK's retry finds the first attempt's item: the
    token identifies it.
    """
    token = secrets.token_hex(16)
    try:
        dynamodb.call(
            dynamodb.client.put_item,
            TableName=settings.ANIMALS_TABLE,
            Item=item | {"token": {"S": token}},
            ConditionExpression="attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        there: Item = error.response.get("Item", {})  # type: ignore[assignment]
        if there.get("token") != {"S": token}:
            raise _taken(item) from error


def _put_once(item: Item, new: Mapping[str, object], record_key: str) -> int:
    """Write an item and the record of its key, or find an earlier request's; return its id."""
    fingerprint = hashlib.sha256(to_json(new)).hexdigest()
    now = int(time.time())
    put_record = {
        "TableName": settings.ANIMALS_TABLE,
        "Item": {
            "pk": {"S": f"idempotency#{record_key}"},
            "id": {"N": "0"},
            "fingerprint": {"S": fingerprint},
            "createdId": item["id"],
            "expires": {"N": str(now + _IDEMPOTENCY_SECONDS)},
        },
        # DynamoDB deletes expired records late (within days), so the expiry is checked here.
        "ConditionExpression": "attribute_not_exists(pk) OR expires <= :now",
        "ExpressionAttributeValues": {":now": {"N": str(now)}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    put_item = {
        "TableName": settings.ANIMALS_TABLE,
        "Item": item,
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    transaction = [{"Put": put_record}, {"Put": put_item}]
    for attempt in range(_CONFLICT_ATTEMPTS):
        if attempt:
            # Another request with this key is being written at the same moment; its outcome
            # decides.
            longest = _CONFLICT_SECONDS * 2 ** (attempt - 1)
            time.sleep(random.uniform(0, longest))  # noqa: S311 - only spreads retries
        try:
            # The SDK adds a ClientRequestToken: its own retry after a lost response is not a second
            # transaction.
            dynamodb.call(dynamodb.client.transact_write_items, TransactItems=transaction)
        except ClientError as error:
            response: Any = error.response
            reasons: list[dict[str, Any]] = response.get("CancellationReasons", [])
            codes = [reason.get("Code") for reason in reasons]
            if codes[:1] == ["ConditionalCheckFailed"]:
                return _recorded(reasons[0]["Item"], fingerprint)
            if "ConditionalCheckFailed" in codes:
                raise _taken(item) from error
            if not _TRANSIENT_REASONS.intersection(codes):
                raise
        else:
            return int(item["id"]["N"])
    raise ServiceUnavailable


def _recorded(record: Item, fingerprint: str) -> int:
    """Return the id that a key's record holds.

    It is this request's own when the response was lost, and the store had forgotten the token.
    """
    if record["fingerprint"]["S"] != fingerprint:
        raise IdempotencyKeyReused
    return int(record["createdId"]["N"])


def _taken(item: Item) -> RuntimeError:
    """Describe for the log an id already in use: the counter is behind and an operator must act."""
    return RuntimeError(f"the counter gave id {item['id']['N']}, which is taken")
