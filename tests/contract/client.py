"""A client that knows only a base URL and a key, and checks every response against openapi.yaml."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.support import openapi

Headers = Sequence[tuple[str, str | bytes]]
Pet = dict[str, Any]

JSON = ("Content-Type", "application/json")
# What no message shows; the last one does not say what is wrong.
INTERNALS = (
    "traceback",
    "pydantic",
    "boto",
    "dynamodb",
    "lambda",
    ".py",
    "is not valid.",
)


@dataclass(frozen=True)
class Client:
    """Sends requests exactly as they are written."""

    http: httpx2.Client
    base_url: str
    api_key: str

    def request(
        self,
        method: str,
        path: str,
        headers: Headers = (),
        content: bytes | None = None,
        *,
        authenticate: bool = True,
    ) -> httpx2.Response:
        """Send a request to a percent-encoded path below the base URL, or to a URL.

        Where a stage throttles, wait as long as it says and try again.
        """
        if authenticate:
            headers = [("Authorization", "Bearer " + self.api_key), *headers]
        pairs: Any = headers
        encoded = httpx2.Headers(pairs, encoding="utf-8")
        url = path if path.startswith("http") else self.base_url + path
        for _ in range(6):
            response = self.http.request(method, url, headers=encoded, content=content)
            if response.status_code != 429:
                break
            time.sleep(float(response.headers["Retry-After"]))
        return response

    def list(self, query: str = "") -> httpx2.Response:
        """Send listPets with a query string."""
        return self.request("GET", "/pets?" + query)

    def post(self, body: object, *headers: tuple[str, str | bytes]) -> httpx2.Response:
        """Send createPet with this value as JSON, or with these bytes as they are."""
        content = (
            body
            if isinstance(body, bytes)
            else json.dumps(body, ensure_ascii=False).encode()
        )
        return self.request("POST", "/pets", [JSON, *headers], content)

    def new(self, **members: object) -> Pet:
        """Return an animal whose name no other test knows."""
        return {"name": "contract " + uuid.uuid4().hex, "categoryId": 1, **members}

    def create(self, **members: object) -> Pet:
        """Create an animal, which is answered as it was sent."""
        new = self.new(**members)
        response = self.post(new)
        assert response.status_code == 201, response.text
        pet: Pet = response.json()
        assert pet == {"id": pet["id"], **new}
        return pet

    def page(self, url: str) -> tuple[Sequence[Pet], str]:
        """Return a page of a list, and the URL of the next one; after the last one nothing."""
        response = self.request("GET", url)
        return response.json(), response.links.get("next", {}).get("url", "")

    def walk(self, url: str) -> Iterator[Pet]:
        """Follow a list to its end. Every page but the last one is full."""
        while url:
            pets, following = self.page(url)
            assert not following or len(pets) == int(httpx2.URL(url).params["limit"])
            yield from pets
            url = following


def check(response: httpx2.Response) -> None:
    """Assert that openapi.yaml declares a response for its request, and that it is not a 5xx."""
    request, content = response.request, response.read()
    seen = f"{request.method} {request.url}: {response} {response.text[:500]}"
    assert response.status_code < 500, seen
    if request.method == "HEAD":
        assert (response.status_code, content) == (404, b""), seen
        return
    path = request.url.raw_path.decode().partition("?")[0].rpartition("/v1")[2]
    operation = openapi.find(request.method, path)
    status, headers = response.status_code, response.headers
    problems = openapi.problems(operation, status, headers, content)
    assert problems == [], f"{seen}: {problems}"
    # API Gateway gives the challenge another name on its way out.
    assert status != 401 or "www-authenticate" in " ".join(headers), seen


def with_limit(url: str, limit: int) -> str:
    """Return a list's URL with another page size."""
    return str(httpx2.URL(url).copy_set_param("limit", limit))


def assert_error(response: httpx2.Response, code: str, naming: str = "") -> None:
    """Assert that this is the Error with this code, and that its message has this in it."""
    error = response.json()
    assert error.get("code") == code, error
    assert naming in error["message"], error
    for internal in INTERNALS:
        assert internal not in error["message"].lower(), error


def eventually(look: Callable[..., Any], *arguments: object) -> Any:
    """Look until it is true or 5 seconds have passed: DynamoDB updates an index a moment later."""
    deadline = time.monotonic() + 5
    while not (result := look(*arguments)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return result
