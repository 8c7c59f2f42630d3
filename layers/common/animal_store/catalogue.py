"""Lists, reads and creates resources in DynamoDB.

A list takes one Query, a read takes one GetItem, and a creation takes two calls that write. All
items are in one table, so that one backup covers all of them. The items are:

    pk                  id       content
    pet                 1, 2...  an animal; if it has a status, it is also in the index `by-status`
    counter             0        the last id assigned
    idempotency#<hash>  0        the id of the animal that an Idempotency-Key created
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
from animal_store.dynamodb import StoreUnavailable
from animal_store.validators import Validator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animal_store.models import CounterResponse
    from animal_store.request import Caller

_IDEMPOTENCY_SECONDS = 24 * 60 * 60
_TRANSACTION_ATTEMPTS = 6
_FIRST_PAUSE_SECONDS = 0.05  # the first pause is at most this long; the limit then doubles
_CONDITION_FAILED = "ConditionalCheckFailed"
# A transaction that was cancelled for one of these reasons may succeed when it is repeated
# (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html).
_TRANSIENT_REASONS = frozenset(
    {"ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"}
)

Item = dict[str, dict[str, str]]
"""An item of the table in DynamoDB's own JSON."""

NewResource = TypeVar("NewResource", bound="Mapping[str, object]")
Resource = TypeVar("Resource")

_COUNTER_RESPONSE: Validator[CounterResponse] = Validator("CounterResponse")


class IdempotencyKeyReused(Exception):
    """The caller has used this Idempotency-Key to create another resource."""


@dataclass(frozen=True)
class Catalogue(Generic[NewResource, Resource]):
    """Lists, reads and creates resources of one kind, such as animals.

    Args:
        partition: The partition key of the resources' items.
        counter: The partition key of the counter that assigns ids to the resources.
        item_response: Validates DynamoDB's response to a GetItem for one resource.
        query_response: Validates DynamoDB's response to a Query for resources.
    """

    partition: str
    counter: str
    item_response: Validator[Any]
    query_response: Validator[Any]

    def page(
        self, limit: int, after: int, filters: Mapping[str, str]
    ) -> tuple[list[Resource], bool]:
        """List a page of resources by ascending id.

        An unfiltered list is strongly consistent. A filtered list comes from an index, which
        DynamoDB updates a moment after the table.

        Args:
            limit: The maximum number of resources on the page, 1 to 100.
            after: The id after which the page begins.
            filters: Maps an attribute to the value that the attribute must have. The attribute
                needs an index `by-<attribute>`. There is at most one filter.

        Returns:
            The resources, and whether another page follows.

        Raises:
            StoreUnavailable: DynamoDB does not answer.
            ValueError: There are two filters (no index has both attributes), or an item is invalid.
        """
        if filters:
            ((attribute, value),) = filters.items()
            options: dict[str, Any] = {"IndexName": f"by-{attribute}"}
        else:
            attribute, value = "pk", self.partition
            options = {"ConsistentRead": True}
        resources = dynamodb.read(
            dynamodb.client.query,
            self.query_response,
            TableName=settings.ANIMALS_TABLE,
            KeyConditionExpression="#attribute = :value AND id > :after",
            ExpressionAttributeNames={"#attribute": attribute},
            ExpressionAttributeValues={":value": {"S": value}, ":after": {"N": str(after)}},
            # Ask for one more than the limit: if it comes, another page follows. 101 of the
            # largest animals stay far below the 1 MB at which DynamoDB ends a response
            # (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html).
            Limit=limit + 1,
            **options,
        )["Items"]
        return resources[:limit], len(resources) > limit

    def get(self, resource_id: int) -> Resource | None:
        """Return the resource with this id, or None if no resource has the id.

        The read is strongly consistent.

        Raises:
            StoreUnavailable: DynamoDB does not answer.
            ValueError: The item is invalid.
        """
        response = dynamodb.read(
            dynamodb.client.get_item,
            self.item_response,
            TableName=settings.ANIMALS_TABLE,
            Key=self._key(resource_id),
            ConsistentRead=True,
        )
        return cast("Resource | None", response.get("Item"))

    def create(
        self, new: NewResource, caller: Caller, idempotency_key: str | None
    ) -> tuple[Resource, bool]:
        """Add a resource under a new id.

        With an idempotency key, one transaction writes the resource and a record of the key. So a
        crash at any point leaves both of them or neither.

        A repeated request takes a new id from the counter, too. Its transaction then fails, because
        the record exists already. So the new id stays unused. DynamoDB's error contains the
        record, which has the id of the resource that the first request added.

        Args:
            new: The resource, as the client sent it.
            caller: Who adds the resource. The resource's item stores the id of the caller's key.
            idempotency_key: The request's Idempotency-Key; None if the client sent none. Within 24
                hours of a creation, the same caller adds nothing with the same key.

        Returns:
            The resource, and whether an earlier request added it.

        Raises:
            IdempotencyKeyReused: The Idempotency-Key was used for another resource.
            StoreUnavailable: DynamoDB does not answer; the resource may have been added anyway.
        """
        new_id = self._next_id()
        item = self._key(new_id) | _attributes(new)
        item["createdBy"] = {"S": caller.key_id}
        item["createdAt"] = {"N": str(int(time.time()))}
        if idempotency_key is None:
            _put(item)
            created_id = new_id
        else:
            scope = f"{caller.key_hash}#{self.partition}#{idempotency_key}"
            record_key = hashlib.sha256(scope.encode()).hexdigest()
            created_id = _put_with_record(item, new, record_key)
        # If an earlier request with this Idempotency-Key added the resource, both requests
        # described the same resource. So only the id has to come from the record.
        return cast("Resource", {"id": created_id, **new}), created_id != new_id

    def _next_id(self) -> int:
        """Take the next id from the counter. If the response is lost, the id stays unused."""
        response = dynamodb.read(
            dynamodb.client.update_item,
            _COUNTER_RESPONSE,
            TableName=settings.ANIMALS_TABLE,
            Key={"pk": {"S": self.counter}, "id": {"N": "0"}},
            UpdateExpression="ADD #value :one",
            ExpressionAttributeNames={"#value": "value"},
            ExpressionAttributeValues={":one": {"N": "1"}},
            ReturnValues="UPDATED_NEW",
        )
        return response["Attributes"]["value"]

    def _key(self, resource_id: int) -> Item:
        return {"pk": {"S": self.partition}, "id": {"N": str(resource_id)}}


def _attributes(resource: Mapping[str, object]) -> Item:
    """Return a resource's members in DynamoDB's JSON, in the form that the models read."""
    return {
        name: {"N": str(value)} if isinstance(value, int) else {"S": str(value)}
        for name, value in resource.items()
    }


def _put(item: Item) -> None:
    """Write an item under an unused id.

    If the response is lost, the SDK repeats the request and finds the id taken. So the item gets a
    random token: if the stored item has it, an earlier attempt succeeded.
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
        response: Any = error.response
        if response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        if response.get("Item", {}).get("token") != {"S": token}:
            raise _id_taken_error(item) from error


def _put_with_record(item: Item, new: Mapping[str, object], record_key: str) -> int:
    """Write an item and an idempotency record, or find the record of an earlier request.

    Args:
        item: The item.
        new: The resource that the item contains, as the client sent it.
        record_key: A hash that stands for the caller, the kind of resource and the Idempotency-Key.

    Returns:
        The id of the resource that this request or an earlier one added.
    """
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
        # DynamoDB may take days to delete an expired record, so check the expiry here.
        "ConditionExpression": "attribute_not_exists(pk) OR expires <= :now",
        "ExpressionAttributeValues": {":now": {"N": str(now)}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    put_item = {
        "TableName": settings.ANIMALS_TABLE,
        "Item": item,
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    cancellation_reasons = _write([{"Put": put_record}, {"Put": put_item}])
    if not cancellation_reasons:
        return int(item["id"]["N"])
    # There is one reason for each item: first the record, then the resource.
    if cancellation_reasons[0]["Code"] != _CONDITION_FAILED:
        raise _id_taken_error(item)
    record = cancellation_reasons[0]["Item"]
    if record["fingerprint"]["S"] != fingerprint:
        raise IdempotencyKeyReused
    # The record may be our own. If an attempt of `_write` succeeds, but its response is lost and
    # the SDK's retry is cancelled, a new transaction follows, and finds the record.
    return int(record["createdId"]["N"])


def _write(transaction: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write all items of a transaction or none. Retry after conflicts and throttling.

    Returns:
        An empty list if the items were written. If a condition does not hold: one cancellation
        reason for each item, in the order of the items.

    Raises:
        StoreUnavailable: All attempts fail, or DynamoDB is unavailable (see `dynamodb.call`).
        ClientError: DynamoDB refused the transaction for another reason.
    """
    for attempt in range(_TRANSACTION_ATTEMPTS):
        if attempt:
            # Another request with this Idempotency-Key may be writing the record: let it finish.
            longest = _FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)
            time.sleep(random.uniform(0, longest))  # noqa: S311 - only spreads retries
        try:
            # The SDK adds a ClientRequestToken, so that DynamoDB doesn't write again when the SDK
            # itself retries after a lost response.
            dynamodb.call(dynamodb.client.transact_write_items, TransactItems=transaction)
        except ClientError as error:
            response: Any = error.response
            reasons: list[dict[str, Any]] = response.get("CancellationReasons", [])
            if any(reason["Code"] == _CONDITION_FAILED for reason in reasons):
                return reasons
            # The `Item` of a reason contains what a client sent: keep it out of the log.
            causes = [
                f"{reason['Code']}: {reason.get('Message')}"
                for reason in reasons
                if reason["Code"] in _TRANSIENT_REASONS
            ]
            if not causes:
                raise
        else:
            return []
    raise StoreUnavailable(f"all attempts were cancelled, the last because of {causes}")


def _id_taken_error(item: Item) -> RuntimeError:
    """Return the error for an id that is taken. An operator must then correct the counter."""
    return RuntimeError(f"the counter gave id {item['id']['N']}, which is taken")
