"""Creates animals for the contract suite, and compares responses with openapi.yaml."""

import uuid
from typing import Any

from httpx2 import Client, Response

from tests.contract import openapi

Pet = dict[str, Any]

# An error's message must have none of these words.
FORBIDDEN_WORDS = (
    "traceback",
    "pydantic",
    "boto",
    "dynamodb",
    "lambda",
    ".py",
    "is not valid.",  # does not say what is wrong
)


def new_pet(**members: object) -> Pet:
    """Return an animal to create, by default with a name that no other animal has."""
    return {"name": f"contract {uuid.uuid4()}", "categoryId": 1, **members}


def create(client: Client, pet: Pet) -> Pet:
    """Create an animal; return it with its id."""
    response = client.post("/pets", json=pet)
    assert response.status_code == 201, response.text
    created: Pet = response.json()
    assert created == {"id": created["id"], **pet}
    return created


def check(response: Response) -> None:
    """Fail if a response is 5xx or differs from openapi.yaml; for HEAD, check only headers."""
    openapi.check_common_headers(response.headers)
    # `sam local`, which Werkzeug serves, sends no request id.
    if "Werkzeug" not in response.headers.get("Server", ""):
        assert response.headers["x-amzn-RequestId"]
    request = response.request
    if request.method == "HEAD":
        return  # openapi.yaml declares no response to HEAD
    content = response.read()
    assert response.status_code < 500, response.text
    path = request.url.raw_path.decode().partition("?")[0].rpartition("/v1")[2]
    operation = openapi.find(request.method, path)
    openapi.check(operation, response.status_code, response.headers, content)
    if response.status_code == 401:
        # API Gateway renames this header to x-amzn-remapped-www-authenticate.
        assert "www-authenticate" in " ".join(response.headers)


def assert_error(response: Response, status: int, naming: str = "") -> None:
    """Fail if the response has another status, or if its message does not contain `naming`."""
    assert response.status_code == status, response.text
    message = response.json()["message"]
    assert naming in message
    for word in FORBIDDEN_WORDS:
        assert word not in message.lower()
