"""What every framework peer shares: models, API key and store, as the documentation of pydantic and boto3 teaches.

One copy for all of them, so that their figures differ by the framework alone.
"""

import base64
import hashlib
import os
import time
from typing import Annotated, Any, Literal

import boto3
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from boto3.dynamodb.conditions import Key
from pydantic import BaseModel, ConfigDict, Field

PetStatus = Literal["available", "pending", "sold"]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]

KEY_CACHE_SECONDS = 60

logger = Logger()
metrics = Metrics()
metrics.set_default_dimensions(Stage=os.environ["STAGE"])

dynamodb = boto3.resource("dynamodb")
animals_table = dynamodb.Table(os.environ["ANIMALS_TABLE"])
api_keys_table = dynamodb.Table(os.environ["API_KEYS_TABLE"])

_known_keys: dict[str, tuple[float, dict[str, Any] | None]] = {}


class NewPet(BaseModel):
    """An animal as a client sends it."""

    model_config = ConfigDict(strict=True)

    name: Annotated[str, Field(min_length=1, max_length=256)]
    categoryId: Int64
    status: PetStatus | None = None


class Pet(BaseModel):
    """An animal as the service answers it."""

    id: Int64
    name: str
    categoryId: Int64
    status: PetStatus | None = None


def is_authorized(authorization: str | None) -> bool:
    """Look the bearer token up by its SHA-256, at most once a minute."""
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        return False
    digest = hashlib.sha256(token.encode()).hexdigest()
    asked, item = _known_keys.get(digest, (0.0, None))
    if time.time() - asked >= KEY_CACHE_SECONDS:
        item = api_keys_table.get_item(Key={"hash": digest}, ConsistentRead=True).get("Item")
        _known_keys[digest] = (time.time(), item)
    if item is None or "revoked" in item:
        return False
    return "expires" not in item or time.time() < item["expires"]


def list_pets(limit: int, status: PetStatus | None, cursor: str | None) -> tuple[list[Pet], str | None]:
    """List animals by ascending id; the second value is the cursor of the next page."""
    query: dict[str, Any] = {"Limit": limit}
    if status is None:
        query |= {"KeyConditionExpression": Key("pk").eq("pet"), "ConsistentRead": True}
    else:
        query |= {"IndexName": "by-status", "KeyConditionExpression": Key("status").eq(status)}
    if cursor is not None:
        query["ExclusiveStartKey"] = {"pk": "pet", "id": int(base64.urlsafe_b64decode(cursor))}
        if status is not None:
            query["ExclusiveStartKey"]["status"] = status
    page = animals_table.query(**query)
    last = page.get("LastEvaluatedKey")
    following = base64.urlsafe_b64encode(str(last["id"]).encode()).decode() if last else None
    return [Pet(**item) for item in page["Items"]], following


def create_pet(new: NewPet) -> Pet:
    """Add an animal under an id of its own."""
    counter = animals_table.update_item(
        Key={"pk": "counter", "id": 0},
        UpdateExpression="ADD #value :one",
        ExpressionAttributeNames={"#value": "value"},
        ExpressionAttributeValues={":one": 1},
        ReturnValues="UPDATED_NEW",
    )
    pet = Pet(id=int(counter["Attributes"]["value"]), **new.model_dump())
    animals_table.put_item(
        Item={"pk": "pet", **pet.model_dump(exclude_none=True)}, ConditionExpression="attribute_not_exists(pk)"
    )
    return pet


def get_pet(pet_id: int) -> Pet | None:
    """Read one animal."""
    item = animals_table.get_item(Key={"pk": "pet", "id": pet_id}, ConsistentRead=True).get("Item")
    return Pet(**item) if item else None


def link(path: str, limit: int, status: PetStatus | None, cursor: str) -> str:
    """Write the Link header of the next page (RFC 8288)."""
    parameters = f"limit={limit}&cursor={cursor}" + (f"&status={status}" if status else "")
    return f'<{path}?{parameters}>; rel="next"'


def record(operation: str, status: int, started: float) -> None:
    """Write the request's log line and metrics.

    Args:
        operation: The interface's name of the operation.
        status: The HTTP status of the answer.
        started: When the request came in, in seconds of `time.perf_counter()`.
    """
    latency_ms = (time.perf_counter() - started) * 1000
    metrics.add_dimension("Operation", operation)
    metrics.add_dimension("Status", str(status))
    metrics.add_metric("Requests", MetricUnit.Count, 1)
    metrics.add_metric("Latency", MetricUnit.Milliseconds, latency_ms)
    logger.info("request", operation=operation, status=status, latency_ms=latency_ms)


def error_body(code: str, message: str, status: int) -> dict[str, Any]:
    """Write the body of an error answer."""
    return {"code": code, "message": message, "status": status}
