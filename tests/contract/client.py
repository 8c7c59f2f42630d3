"""Make the requests of the cases, and check each response against openapi.yaml."""

import time
import uuid
from collections.abc import Generator, Iterator
from typing import Any

import httpx2

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


class Key(httpx2.Auth):
    """Sends the key where a request has no Authorization of its own.

    Where a stage throttles, it waits as long as the stage says and tries again.
    """

    def __init__(self, api_key: str) -> None:
        self._header = f"Bearer {api_key}"

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Send a request up to six times."""
        request.headers.setdefault("Authorization", self._header)
        for _ in range(6):
            response = yield request
            if response.status_code != 429:
                return
            time.sleep(float(response.headers["Retry-After"]))


def new(**members: object) -> Pet:
    """Return an animal whose name no other test knows."""
    return {"name": "contract " + uuid.uuid4().hex, "categoryId": 1, **members}


def create(client: httpx2.Client, **members: object) -> Pet:
    """Create an animal, which is answered as it was sent."""
    sent = new(**members)
    response = client.post("/pets", json=sent)
    assert response.status_code == 201, response.text
    pet: Pet = response.json()
    assert pet == {"id": pet["id"], **sent}
    return pet


def walk(client: httpx2.Client, url: str) -> Iterator[Pet]:
    """Follow a list to its end: pages are full before the last, which no link leads to in vain."""
    limit = int(httpx2.URL(url).params["limit"])
    response = client.get(url)
    assert response.is_success, response.text
    yield from response.json()
    while following := response.links.get("next"):
        assert len(response.json()) == limit
        response = client.get(following["url"])
        assert response.json()
        yield from response.json()


def check(response: httpx2.Response) -> None:
    """Assert that openapi.yaml declares a response for its request, and that it is not a 5xx."""
    request, status, headers = response.request, response.status_code, response.headers
    if request.method == "HEAD":
        return
    content = response.read()
    seen = f"{request.method} {request.url}: {response} {response.text[:500]}"
    assert status < 500, seen
    path = request.url.raw_path.decode().partition("?")[0].rpartition("/v1")[2]
    operation = openapi.find(request.method, path)
    assert openapi.problems(operation, status, headers, content) == [], seen
    # API Gateway gives the challenge another name on its way out.
    assert status != 401 or "www-authenticate" in " ".join(headers), seen


def assert_error(response: httpx2.Response, code: str, naming: str = "") -> None:
    """Assert that this is the Error with this code, and that its message has this in it."""
    error = response.json()
    assert error["code"] == code, error
    assert naming in error["message"]
    for internal in INTERNALS:
        assert internal not in error["message"].lower()
