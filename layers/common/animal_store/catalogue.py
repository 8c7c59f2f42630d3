"""The catalogue in DynamoDB: a list is one Query, a read one GetItem, a creation two writes.

Everything lives in one table, so that a backup holds animals, counter and records of one moment:

    pk                  id       what
    pet                 1, 2...  an animal; those with a status are in the index `by-status`, too
    counter             0        the last id given
    idempotency#<hash>  0        the animal that was created with an Idempotency-Key
"""

from __future__ import annotations

import hashlib
import random
import secrets
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from botocore.exceptions import ClientError
from pydantic_core import to_json

from animal_store import dynamodb, settings
from animal_store.errors import IdempotencyKeyReused, ServiceUnavailable
from animal_store.validators import Validator

if TYPE_CHECKING:
    from animal_store.auth import Caller
    from animal_store.models import NewPet, Pet, PetItem, PetQuery
    from animal_store.pet_status import PetStatus

_PET_QUERY: Validator[PetQuery] = Validator("PetQuery")
_PET_ITEM: Validator[PetItem] = Validator("PetItem")
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


class Page(NamedTuple):
    """A part of a list.

    Args:
        pets: The animals, by ascending id.
        has_next: Whether more animals follow.
    """

    pets: list[Pet]
    has_next: bool


class Creation(NamedTuple):
    """The outcome of a creation.

    Args:
        pet: The animal.
        replayed: Whether an earlier request created it.
    """

    pet: Pet
    replayed: bool


def list_pets(limit: int, status: PetStatus | None, after: int) -> Page:
    """List animals by ascending id.

    The whole list is strongly consistent. A filtered one comes from an index, which DynamoDB
    updates a moment after the table, and reads only what it returns, however rare the status.

    Args:
        limit: The most animals to return, 1 to 100.
        status: Only animals with this status; None for all.
        after: Only animals with a greater id.

    Raises:
        ServiceUnavailable: The store does not answer.
    """
    query: dict[str, Any]
    if status is None:
        query = {
            "ConsistentRead": True,
            "KeyConditionExpression": "pk = :partition AND id > :after",
        }
    else:
        query = {
            "IndexName": "by-status",
            "KeyConditionExpression": "#status = :partition AND id > :after",
            "ExpressionAttributeNames": {"#status": "status"},
        }
    pets = dynamodb.read(
        dynamodb.client.query,
        _PET_QUERY,
        TableName=settings.ANIMALS_TABLE,
        ExpressionAttributeValues={
            ":partition": {"S": status or "pet"},
            ":after": {"N": str(after)},
        },
        # One more than asked for tells whether a page follows. 101 of the largest animals stay far
        # below the 1 MB at which DynamoDB itself cuts a page
        # (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html).
        Limit=limit + 1,
        **query,
    )["Items"]
    return Page(pets[:limit], has_next=len(pets) > limit)


def get_pet(pet_id: int) -> Pet | None:
    """Read one animal with strong consistency; None if there is none with this id.

    Raises:
        ServiceUnavailable: The store does not answer.
    """
    return dynamodb.read(
        dynamodb.client.get_item,
        _PET_ITEM,
        TableName=settings.ANIMALS_TABLE,
        Key={"pk": {"S": "pet"}, "id": {"N": str(pet_id)}},
        ConsistentRead=True,
    ).get("Item")


def create_pet(new: NewPet, caller: Caller, idempotency_key: str | None) -> Creation:
    """Add an animal under an id of its own.

    With a key, the animal and the record of the key are written in one transaction: a crash at any
    point leaves both or neither. A retry finds the record through the transaction's own condition,
    at the price of a gap in the ids.

    Args:
        new: The animal.
        caller: Who adds it. The item records caller and time; no response contains either.
        idempotency_key: Creations of one caller with the same value are one creation; None if
            the client sent none.

    Raises:
        IdempotencyKeyReused: The key was used with a different animal.
        ServiceUnavailable: The store does not answer; the animal may or may not have been added.
    """
    pet = _with_id(_next_id(), new)
    item = _item(pet, caller)
    if idempotency_key is None:
        _put(pet, item)
        return Creation(pet, replayed=False)
    return _put_once(
        pet, item, new, hashlib.sha256(f"{caller.key_hash}#{idempotency_key}".encode()).hexdigest()
    )


def _next_id() -> int:
    """Take the next id from the atomic counter: unique, ascending; a lost response leaves a gap."""
    counter = _update(
        Key={"pk": {"S": "counter"}, "id": {"N": "0"}},
        UpdateExpression="ADD #value :one",
        ExpressionAttributeNames={"#value": "value"},
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
    )
    return int(counter["value"]["N"])


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


def _put(pet: Pet, item: Item) -> None:
    """Write an animal under an unused id.

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
            raise _taken(pet) from error


def _put_once(pet: Pet, item: Item, new: NewPet, record_key: str) -> Creation:
    """Write an animal and the record of its key, or find what an earlier request wrote."""
    fingerprint = hashlib.sha256(to_json(new)).hexdigest()
    now = int(time.time())
    put_record = {
        "TableName": settings.ANIMALS_TABLE,
        "Item": {
            "pk": {"S": f"idempotency#{record_key}"},
            "id": {"N": "0"},
            "fingerprint": {"S": fingerprint},
            "petId": {"N": str(pet["id"])},
            "expires": {"N": str(now + _IDEMPOTENCY_SECONDS)},
        },
        # DynamoDB deletes expired records late (within days), so the expiry is checked here.
        "ConditionExpression": "attribute_not_exists(pk) OR expires <= :now",
        "ExpressionAttributeValues": {":now": {"N": str(now)}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    put_pet = {
        "TableName": settings.ANIMALS_TABLE,
        "Item": item,
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    transaction = [{"Put": put_record}, {"Put": put_pet}]
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
                return _replay(reasons[0]["Item"], pet, new, fingerprint)
            if "ConditionalCheckFailed" in codes:
                raise _taken(pet) from error
            if not _TRANSIENT_REASONS.intersection(codes):
                raise
        else:
            return Creation(pet, replayed=False)
    raise ServiceUnavailable


def _replay(record: Item, pet: Pet, new: NewPet, fingerprint: str) -> Creation:
    """Return what the first creation returned: the body is the same, so only its id is looked up.

    A record with this request's own id was written by this request: the response was lost, and the
    store had forgotten the token.
    """
    if record["fingerprint"]["S"] != fingerprint:
        raise IdempotencyKeyReused
    first = int(record["petId"]["N"])
    return Creation(_with_id(first, new), replayed=first != pet["id"])


def _with_id(pet_id: int, new: NewPet) -> Pet:
    return {"id": pet_id, **new}


def _taken(pet: Pet) -> RuntimeError:
    """Describe for the log an id already in use: the counter is behind and an operator must act."""
    return RuntimeError(f"the counter gave id {pet['id']}, which is taken")


def _item(pet: Pet, caller: Caller) -> Item:
    """Make an animal's item: the reverse of `Pet`'s aliases, with who added it and when."""
    item = {
        name: {"N": str(value)} if isinstance(value, int) else {"S": str(value)}
        for name, value in pet.items()
    }
    item["pk"] = {"S": "pet"}
    item["createdBy"] = {"S": caller.key_id}
    item["createdAt"] = {"N": str(int(time.time()))}
    return item
