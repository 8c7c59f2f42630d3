"""A client of the service that knows its base URL and a key, and nothing else."""

import itertools
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

import httpx

from tests import openapi
from tests.contract import conformance

Headers = Sequence[tuple[str, str | bytes]]
Pet = dict[str, Any]
Result = TypeVar("Result")

_ATTEMPTS = 6  # where a stage throttles, at a second's distance

JSON = ("Content-Type", "application/json")


class Client:
    """Sends requests as they are written and checks every answer (`conformance.check`).

    Args:
        base_url: Where the service is, ending in `/v1`.
        api_key: The key that requests carry unless they say otherwise.
        transport: How it is reached, when not over the network.
    """

    def __init__(self, base_url: str, api_key: str, transport: httpx.BaseTransport | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self.api_key = api_key
        # Names of this run's animals: the store may hold others, of earlier runs and of other clients.
        self._run = uuid.uuid4().hex[:12]
        self._numbers = itertools.count(1)
        # A cold start and a rehearsal on two cores are slow; a service that hangs is not waited for.
        self._http = httpx.Client(event_hooks={"response": [self._check]}, timeout=30, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def request(
        self, method: str, path: str, headers: Headers = (), content: bytes | None = None, *, authenticate: bool = True
    ) -> httpx.Response:
        """Send a request; when the stage's throttle refuses it, wait and send it again.

        Args:
            method: The HTTP method.
            path: What follows the base URL, percent-encoded, with its query string; or a whole URL.
            headers: In the order and spelling in which they are sent, repeated ones too.
            content: The body.
            authenticate: Whether to add the `Authorization` header.
        """
        authorization: Headers = [("Authorization", f"Bearer {self.api_key}")] if authenticate else []
        encoded = [
            (name.encode(), value if isinstance(value, bytes) else value.encode())
            for name, value in (*authorization, *headers)
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
        return self.request("GET", "/pets?" + urlencode({k: v for k, v in parameters.items() if v is not None}))

    def get(self, pet_id: int | str) -> httpx.Response:
        """Send getPet; the identifier is sent as written."""
        return self.request("GET", f"/pets/{pet_id}")

    def post(self, body: object, *headers: tuple[str, str | bytes]) -> httpx.Response:
        """Send createPet with this value as JSON, or with these bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", "/pets", [JSON, *headers], content)

    def new(self, **members: object) -> Pet:
        """Make up an animal whose name no other test knows."""
        return {"name": f"contract {self._run} {next(self._numbers)}", "categoryId": 1} | members

    def create(self, **members: object) -> Pet:
        """Create an animal and return it."""
        response = self.post(self.new(**members))
        assert response.status_code == 201, response.text
        return pet_of(response)

    def pages(self, url: str) -> Iterator[Sequence[Pet]]:
        """Follow a list to its end, by its links alone.

        Asserts that a page with a next one is full, and that its link keeps limit and filter.

        Args:
            url: Path or URL of the first page.
        """
        following: str | None = url
        while following is not None:
            response = self.request("GET", following)
            assert response.status_code == 200, response.text
            pets, this, following = pets_of(response), response.request.url.params, next_url(response)
            if following is not None:
                then = httpx.URL(following).params
                assert len(pets) == int(this.get("limit", 20)), response.request.url
                assert then.get("limit", "20") == this.get("limit", "20"), following
                assert then.get("status") == this.get("status"), following
                assert then["cursor"] != this.get("cursor"), following
            yield pets

    def page_with(self, pet_id: int, url: str) -> httpx.Response:
        """Follow a list to the page that holds an animal."""
        following: str | None = url
        while following is not None:
            response = self.request("GET", following)
            if any(pet["id"] == pet_id for pet in pets_of(response)):
                return response
            following = next_url(response)
        raise AssertionError(f"the animal {pet_id} is not listed")

    def _check(self, response: httpx.Response) -> None:
        response.read()
        conformance.check(response)


def pet_of(response: httpx.Response) -> Pet:
    """Read the animal of an answer."""
    pet = openapi.strict_json(response.text)
    assert isinstance(pet, dict), pet
    return pet


def pets_of(response: httpx.Response) -> Sequence[Pet]:
    """Read the animals of a page."""
    pets = openapi.strict_json(response.text)
    assert isinstance(pets, list), pets
    return pets


def next_url(response: httpx.Response) -> str | None:
    """Find the URL of the next page as any RFC 8288 parser does; None on the last one."""
    return response.links.get("next", {}).get("url")


def with_limit(url: str, limit: int) -> str:
    """Change the page size of a list's URL."""
    return str(httpx.URL(url).copy_set_param("limit", limit))


def assert_error(response: httpx.Response, code: str, naming: str = "") -> None:
    """Assert that this is the Error with this code (its form is checked for every answer).

    Args:
        response: The answer.
        code: One of the interface's error codes.
        naming: The member, parameter or header that the message must name.
    """
    assert response.status_code in openapi.statuses_of_codes()[code], response.text
    error = openapi.strict_json(response.text)
    assert error["code"] == code, error
    assert naming in error["message"], error


def eventually(look: Callable[[], Result], *, seconds: float = 5) -> Result:
    """Look again until it is true or the time is up: an index of DynamoDB follows its table a moment later."""
    deadline = time.monotonic() + seconds
    while not (result := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return result
