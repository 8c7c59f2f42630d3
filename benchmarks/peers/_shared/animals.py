"""What the framework peers share: models, keys, log line, metrics, as the libraries teach.

One copy for all of them, so that their figures differ by the framework, and by the kind of client
in `store`, alone.
"""

import base64
import hashlib
import os
import time
from typing import Annotated, Literal

import store
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from pydantic import BaseModel, ConfigDict, Field

OPERATIONS = {
    ("GET", "/v1/pets"): "listPets",
    ("POST", "/v1/pets"): "createPet",
    ("GET", "/v1/pets/{petId}"): "getPet",
}
KEY_CACHE_SECONDS = 60

PetStatus = Literal["available", "pending", "sold"]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]

logger = Logger()
metrics = Metrics()
metrics.set_default_dimensions(Stage=os.environ["STAGE"])

_known_keys = {}


class NewPet(BaseModel):
    model_config = ConfigDict(strict=True)
    name: Annotated[str, Field(min_length=1, max_length=256)]
    categoryId: Int64
    status: PetStatus | None = None


class Pet(BaseModel):
    id: Int64
    name: str
    categoryId: Int64
    status: PetStatus | None = None


class Page(BaseModel):
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    status: PetStatus | None = None
    cursor: str | None = None


def is_authorized(authorization):
    """Look the bearer token up by its SHA-256, at most once a minute."""
    scheme, _, token = (authorization or "").partition(" ")
    digest = hashlib.sha256(token.encode()).hexdigest()
    asked, item = _known_keys.get(digest, (0.0, {}))
    if time.time() - asked >= KEY_CACHE_SECONDS:
        item = store.get_key(digest)
        _known_keys[digest] = (time.time(), item)
    expired = "expires" in item and time.time() >= item["expires"]
    is_valid = "hash" in item and "revoked" not in item and not expired
    return scheme.lower() == "bearer" and is_valid


def list_pets(page):
    """List animals by ascending id; return them and the header of the next page (RFC 8288)."""
    after = int(base64.urlsafe_b64decode(page.cursor)) if page.cursor else None
    items, last = store.query(page.limit, page.status, after)
    pets = [Pet(**item) for item in items]
    if not last:
        return pets, {}
    cursor = base64.urlsafe_b64encode(str(last).encode()).decode()
    parameters = f"limit={page.limit}&cursor={cursor}"
    if page.status:
        parameters += f"&status={page.status}"
    return pets, {"Link": f'</v1/pets?{parameters}>; rel="next"'}


def create_pet(new):
    pet = Pet(id=store.next_id(), **new.model_dump())
    store.put(pet.model_dump(exclude_none=True))
    return pet


def get_pet(pet_id):
    item = store.get(pet_id)
    return Pet(**item) if item else None


def record(operation, status, started):
    """Write the log line and the metrics of a request that began at that `time.perf_counter()`."""
    latency_ms = (time.perf_counter() - started) * 1000
    metrics.add_dimension("Operation", operation)
    metrics.add_dimension("Status", str(status))
    metrics.add_metric("Requests", MetricUnit.Count, 1)
    metrics.add_metric("Latency", MetricUnit.Milliseconds, latency_ms)
    logger.info("request", operation=operation, status=status, latency_ms=latency_ms)
