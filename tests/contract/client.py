"""Make the requests of the cases, and check each response against openapi.yaml."""

import uuid
from typing import Any

from httpx2 import Client, Response

from tests.support import openapi

Pet = dict[str, Any]

# No message shows these words; the last of them would not say what is wrong.
INTERNALS = (
    "traceback",
    "pydantic",
    "boto",
    "dynamodb",
    "lambda",
    ".py",
    "is not valid.",
)


def new(**members: object) -> Pet:
    """Return an animal whose name no other test knows."""
    return {"name": f"contract {uuid.uuid4()}", "categoryId": 1, **members}


def create(client: Client, pet: Pet, **headers: str) -> Pet:
    """Create an animal; the response has its id and what was sent."""
    response = client.post("/pets", json=pet, headers=headers)
    assert response.status_code == 201, response.text
    created: Pet = response.json()
    assert created == {"id": created["id"], **pet}
    return created


def check(response: Response) -> None:
    """Fail where openapi.yaml does not declare the response, and where it is a 5xx."""
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
    """Assert the status of an error, and that its message has this in it."""
    assert response.status_code == status, response.text
    message = response.json()["message"]
    assert naming in message
    for internal in INTERNALS:
        assert internal not in message.lower()
