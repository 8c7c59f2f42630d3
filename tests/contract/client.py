"""Helpers of the contract suite: creations, and checks of responses against openapi.yaml."""

import uuid
from typing import Any

from httpx2 import Client, Response

from tests.support import openapi

Pet = dict[str, Any]

# An error's message has none of these words.
INTERNALS = (
    "traceback",
    "pydantic",
    "boto",
    "dynamodb",
    "lambda",
    ".py",
    "is not valid.",  # does not say what is wrong
)


def new_pet(**members: object) -> Pet:
    """Return an animal to create, with a name that no other animal has."""
    return {"name": f"contract {uuid.uuid4()}", "categoryId": 1, **members}


def create(client: Client, pet: Pet, **headers: str) -> Pet:
    """Create an animal; return it with its id."""
    response = client.post("/pets", json=pet, headers=headers)
    assert response.status_code == 201, response.text
    created: Pet = response.json()
    assert created == {"id": created["id"], **pet}
    return created


def check(response: Response) -> None:
    """Fail if the response is a 5xx, or is not declared in openapi.yaml."""
    request = response.request
    if request.method == "HEAD":
        return
    content = response.read()
    assert response.status_code < 500, response.text
    path = request.url.raw_path.decode().partition("?")[0].rpartition("/v1")[2]
    operation = openapi.find(request.method, path)
    openapi.check(operation, response.status_code, response.headers, content)
    if response.status_code == 401:
        # API Gateway gives the challenge another name on its way out.
        assert "www-authenticate" in " ".join(response.headers)


def assert_error(response: Response, status: int, naming: str = "") -> None:
    """Check the status of an error, and that its message names this."""
    assert response.status_code == status, response.text
    message = response.json()["message"]
    assert naming in message
    for internal in INTERNALS:
        assert internal not in message.lower()
