"""A client that knows the service's base URL and a key alone, and checks every response against openapi.yaml."""

import itertools
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlencode

import httpx

from tests.support import openapi

Headers = Sequence[tuple[str, str | bytes]]
Pet = dict[str, Any]
Result = TypeVar("Result")

JSON = ("Content-Type", "application/json")
_ATTEMPTS = 6  # where a stage throttles


class Client:
    """Sends requests as they are written."""

    def __init__(self, http: httpx.Client, base_url: str, api_key: str) -> None:
        self.base_url = base_url.rstrip("/")
        self.api_key = api_key
        self._http = http
        # Names of this run's animals: the store may hold others, of earlier runs and of other clients.
        self._names = (
            f"contract {run} {number}"
            for run in [uuid.uuid4().hex[:12]]
            for number in itertools.count(1)
        )

    def request(
        self,
        method: str,
        path: str,
        headers: Headers = (),
        content: bytes | None = None,
        *,
        authenticate: bool = True,
    ) -> httpx.Response:
        """Send a request to a percent-encoded path below the base URL, or to a URL; wait where the stage throttles."""
        if authenticate:
            headers = [("Authorization", f"Bearer {self.api_key}"), *headers]
        encoded = [
            (name.encode(), value.encode() if isinstance(value, str) else value)
            for name, value in headers
        ]
        url = path if path.startswith("http") else self.base_url + path
        for _ in range(_ATTEMPTS):
            response = self._http.request(method, url, headers=encoded, content=content)
            if response.status_code != httpx.codes.TOO_MANY_REQUESTS:
                break
            time.sleep(float(response.headers.get("Retry-After", 1)))
        return response

    def list(self, **parameters: str | int | None) -> httpx.Response:
        """Send listPets with these parameters; None leaves one out."""
        return self.request(
            "GET", "/pets?" + urlencode({k: v for k, v in parameters.items() if v is not None})
        )

    def get(self, pet_id: int | str) -> httpx.Response:
        """Send getPet; the identifier is sent as written."""
        return self.request("GET", f"/pets/{pet_id}")

    def post(self, body: object, *headers: tuple[str, str | bytes]) -> httpx.Response:
        """Send createPet with this value as JSON, or with these bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", "/pets", [JSON, *headers], content)

    def new(self, **members: object) -> Pet:
        """Make up an animal whose name no other test knows; None leaves a member out."""
        pet = {"name": next(self._names), "categoryId": 1} | members
        return {member: value for member, value in pet.items() if value is not None}

    def create(self, **members: object) -> Pet:
        """Create an animal and return it."""
        response = self.post(self.new(**members))
        assert response.status_code == 201, response.text
        pet: Pet = response.json()
        return pet

    def pages(self, url: str) -> Iterator[Sequence[Pet]]:
        """Follow a list to its end; a page with a next one is full, and its link changes the cursor alone."""
        following: str | None = url
        while following is not None:
            response = self.request("GET", following)
            assert response.status_code == 200, response.text
            pets, this, following = (
                response.json(),
                response.request.url.params.set("cursor", ""),
                next_url(response),
            )
            if following is not None:
                assert len(pets) == int(this["limit"]), response.request.url
                assert httpx.URL(following).params.set("cursor", "") == this, following
            yield pets


@contextmanager
def connect(base_url: str, api_key: str, transport: httpx.BaseTransport | None) -> Iterator[Client]:
    """Open a client; without a transport, over the network."""
    # A cold start and a rehearsal on two cores are slow; a service that hangs is not waited for.
    with httpx.Client(event_hooks={"response": [_check]}, timeout=30, transport=transport) as http:
        yield Client(http, base_url, api_key)


def _check(response: httpx.Response) -> None:
    """Assert that a response is one that openapi.yaml declares for its request, and no failure of the service."""
    request, content = response.request, response.read()
    seen = f"{request.method} {request.url}: {response.status_code} {response.text[:500]}"
    assert response.status_code < 500, seen
    if request.method == "HEAD":
        assert (response.status_code, content) == (404, b""), seen
        return
    operation = openapi.find(
        request.method, request.url.raw_path.decode().partition("?")[0].rpartition("/v1")[2]
    )
    problems = openapi.problems(operation, response.status_code, response.headers, content)
    assert not problems, f"{seen}: {problems}"


def next_url(response: httpx.Response) -> str | None:
    """Find the URL of the next page as any RFC 8288 parser does; None on the last one."""
    return response.links.get("next", {}).get("url")


def with_limit(url: str, limit: int) -> str:
    """Change the page size of a list's URL."""
    return str(httpx.URL(url).copy_set_param("limit", limit))


def assert_error(response: httpx.Response, code: str, naming: str = "") -> None:
    """Assert that this is the Error with this code, and that its message names a member, parameter or header."""
    assert response.status_code in openapi.statuses_of_codes()[code], response.text
    error = response.json()
    assert error["code"] == code, error
    assert naming in error["message"], error


def eventually(look: Callable[[], Result], *, seconds: float = 5) -> Result:
    """Look again until it is true or the time is up: an index of DynamoDB follows its table a moment later."""
    deadline = time.monotonic() + seconds
    while not (result := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return result
