"""A client that knows only a base URL and a key, and checks every response against openapi.yaml."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from tests.support import openapi

Headers = Sequence[tuple[str, str | bytes]]
Pet = dict[str, Any]
Result = TypeVar("Result")

JSON = ("Content-Type", "application/json")
_ATTEMPTS = 6  # where a stage throttles


class Client:
    """Sends requests exactly as they are written."""

    def __init__(self, http: httpx.Client, base_url: str, api_key: str) -> None:
        self.base_url = base_url.rstrip("/")
        self.api_key = api_key
        self._http = http

    def request(
        self,
        method: str,
        path: str,
        headers: Headers = (),
        content: bytes | None = None,
        *,
        authenticate: bool = True,
    ) -> httpx.Response:
        """Send a request to a percent-encoded path below the base URL, or to a URL.

        Where a stage throttles, wait as long as it says and try again.
        """
        if authenticate:
            headers = [("Authorization", "Bearer " + self.api_key), *headers]
        pairs: Any = headers
        encoded = httpx.Headers(pairs, encoding="utf-8")
        url = path if path.startswith("http") else self.base_url + path
        for _ in range(_ATTEMPTS):
            response = self._http.request(method, url, headers=encoded, content=content)
            if response.status_code != 429:
                break
            time.sleep(float(response.headers["Retry-After"]))
        return response

    def list(self, query: str = "") -> httpx.Response:
        """Send listPets with a query string."""
        return self.request("GET", "/pets?" + query)

    def get(self, pet_id: int | str) -> httpx.Response:
        """Send getPet; the identifier is sent as written."""
        return self.request("GET", f"/pets/{pet_id}")

    def post(self, body: object, *headers: tuple[str, str | bytes]) -> httpx.Response:
        """Send createPet with this value as JSON, or with these bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", "/pets", [JSON, *headers], content)

    def new(self, **members: object) -> Pet:
        """Return an animal whose name no other test knows; None leaves a member out."""
        pet = {"name": "contract " + uuid.uuid4().hex, "categoryId": 1, **members}
        return {member: value for member, value in pet.items() if value is not None}

    def create(self, **members: object) -> Pet:
        """Create an animal and return it."""
        response = self.post(self.new(**members))
        assert response.status_code == 201, response.text
        pet: Pet = response.json()
        return pet

    def pages(self, url: str) -> Iterator[Sequence[Pet]]:
        """Follow a list to its end. Every page but the last one is full."""
        following: str | None = url
        while following:
            response = self.request("GET", following)
            assert response.status_code == 200, response.text
            following = next_url(response)
            if following:
                limit = response.request.url.params["limit"]
                assert len(response.json()) == int(limit), response.request.url
            yield response.json()


@contextmanager
def connect(
    base_url: str, api_key: str, transport: httpx.BaseTransport | None
) -> Iterator[Client]:
    """Open a client; without a transport, over the network."""
    # A cold start and a rehearsal on two cores are slow; a service that hangs is not waited for.
    with httpx.Client(
        event_hooks={"response": [_check]}, timeout=30, transport=transport
    ) as http:
        yield Client(http, base_url, api_key)


def _check(response: httpx.Response) -> None:
    """Assert that openapi.yaml declares a response for its request, and that it is not a 5xx."""
    request, content = response.request, response.read()
    seen = f"{request.method} {request.url}: {response} {response.text[:500]}"
    assert response.status_code < 500, seen
    if request.method == "HEAD":
        assert (response.status_code, content) == (404, b""), seen
        return
    path = request.url.raw_path.decode().partition("?")[0].rpartition("/v1")[2]
    operation = openapi.find(request.method, path)
    problems = openapi.problems(
        operation, response.status_code, response.headers, content
    )
    assert problems == [], seen


def short(value: object) -> str:
    """Return the id of a case: its value, cut."""
    return ascii(value)[:40]


def next_url(response: httpx.Response) -> str | None:
    """Return the URL of the next page; None on the last one."""
    return response.links.get("next", {}).get("url")


def with_limit(url: str, limit: int) -> str:
    """Return a list's URL with another page size."""
    return str(httpx.URL(url).copy_set_param("limit", limit))


def assert_error(response: httpx.Response, code: str, naming: str = "") -> None:
    """Assert that this is the Error with this code, and that its message has this in it."""
    error = response.json()
    assert response.is_error, error
    assert error["code"] == code, error
    assert naming in error["message"], error


def eventually(look: Callable[[], Result], *, seconds: float = 5) -> Result:
    """Look until it is true or the time is up: DynamoDB updates an index a moment later."""
    deadline = time.monotonic() + seconds
    while not (result := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return result
