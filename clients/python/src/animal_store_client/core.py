"""The calls, without input and output: requests, what a response means, when to try again."""

import json
import logging
import os
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Generic, TypeVar

import httpx2

from animal_store_client import errors
from animal_store_client.pet import AnyStatus, Page, Pet

try:
    __version__ = version("animal-store-client")
except PackageNotFoundError:  # imported from a checkout that is not installed
    __version__ = "0"

MAX_BODY_BYTES = 2**20  # a page of 100 animals with the longest names takes about a tenth
_BASE_URL = re.compile(r"https?://[^\s/\\?#@]+(/[^\s\\?#]+)?/v1/?")
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
# A link's target and its relations (RFC 8288, section 3).
_LINK = re.compile(r'<([^>]*)>(?:[^<"]|"[^"]*")*?;\s*rel\s*=\s*"?([^";,]*)', re.IGNORECASE)
_log = logging.getLogger("animal_store_client")
T = TypeVar("T")
Http = TypeVar("Http", bound=httpx2.Client | httpx2.AsyncClient)


class Core(Generic[Http]):
    """What both clients share.

    Args:
        base_url: Starts with `https://` and ends with `/v1`. One on this machine (`127.0.0.1`,
            `[::1]`, `localhost`) may start with `http://`.
        api_key: Sent to this origin only.
        timeout_s: For each attempt; API Gateway answers within 29 seconds.
        deadline_s: For each call, over all attempts and pauses; in a list, for each page.
        attempts: The maximum number of times a request is sent; creations carry an Idempotency-Key.
        max_retry_after_s: The longest `Retry-After` that the client waits for.
        http_client: With your own certificates or proxy, for instance. You must close it, and make
            a client with another in a process that is forked after its first use.

    Raises:
        ValueError: The base URL is invalid or not encrypted, or the key cannot be a header.
    """

    _connect: type[Http]

    def __init__(  # noqa: PLR0913
        self,
        base_url: str,
        api_key: str,
        *,
        timeout_s: float = 35.0,
        deadline_s: float = 120.0,
        attempts: int = 6,
        max_retry_after_s: float = 30.0,
        http_client: Http | None = None,
    ) -> None:
        if not _BASE_URL.fullmatch(base_url):
            raise ValueError("A base URL is https://HOST/v1 (http:// for this machine alone)")
        self._pets = httpx2.URL(f"{base_url.rstrip('/')}/pets")
        host = self._pets.host
        if self._pets.scheme == "http" and host not in _LOOPBACK:
            raise ValueError(f"The base URL http://{host} exposes the key in transit: use https://")
        if not re.fullmatch("[!-~]+", api_key):
            raise ValueError("The API key is empty, or has a character that no key has")
        self.timeout_s, self.deadline_s = timeout_s, deadline_s
        self.attempts, self.max_retry_after_s = attempts, max_retry_after_s
        self.headers = {
            "Authorization": f"Bearer {api_key}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # compressed, a body could be larger than it looks
            "User-Agent": f"animal-store-client/{__version__}",
        }
        trust_env = host not in _LOOPBACK  # a proxy cannot reach this machine's own services
        self._open: Callable[[], Http] = lambda: self._connect(trust_env=trust_env)
        self._given = http_client is not None
        self._http = http_client or self._open()
        self._owner: object = None

    def _connections(self, loop: object = None) -> Http:
        """Return connections that no other process or event loop has used: a fork shares them."""
        owner = (os.getpid(), loop)
        if self._owner not in {None, owner}:
            if self._given:
                raise RuntimeError("The http_client belongs to another process or event loop")
            self._http = self._open()
        self._owner = owner
        return self._http

    def _pages(self, status: AnyStatus, size: int, cursor: str | None) -> Iterator["Call[Page]"]:
        """Yield the call for each page; the next is known once the previous one has its result."""
        query = _without_none(limit=size, status=status, cursor=cursor)
        url: httpx2.URL | None = self._pets.copy_merge_params(query)
        seen: set[str] = set()

        def read(response: httpx2.Response, value: Any) -> Page:
            nonlocal url
            if not isinstance(value, list):
                raise errors.InvalidResponseError(f"The response is not a page: {str(value)[:200]}")
            url = self._next_url(response)
            if str(url) in seen:
                raise errors.InvalidResponseError("The next page is said to be an earlier one")
            return Page(tuple(map(Pet.from_json, value)), url.params["cursor"] if url else None)

        while url:
            seen.add(str(url))
            yield Call(self, "GET", url, read)

    def _create(self, name: str, category: int, status: AnyStatus, key: str | None) -> "Call[Pet]":
        def read(response: httpx2.Response, value: Any) -> Pet:
            return Pet.from_json(value, replayed="Idempotency-Replayed" in response.headers)

        body = _without_none(name=name, categoryId=category, status=status)
        return Call(self, "POST", self._pets, read, body, str(uuid.uuid4()) if key is None else key)

    def _get(self, pet_id: int) -> "Call[Pet]":
        url = self._pets.copy_with(path=f"{self._pets.path}/{pet_id}")
        return Call(self, "GET", url, lambda _, value: Pet.from_json(value))

    def _next_url(self, response: httpx2.Response) -> httpx2.URL | None:
        """Return the URL of the next page; never one that would take the key to another origin."""
        links = _LINK.findall(response.headers.get("Link", ""))
        targets = [target for target, relations in links if "next" in relations.lower().split()]
        if not targets:
            return None
        try:
            url = response.url.join(targets[0])
        except httpx2.InvalidURL:
            url = httpx2.URL()
        origin = (self._pets.scheme, self._pets.netloc, b"")
        if (url.scheme, url.netloc, url.userinfo) != origin or "cursor" not in url.params:
            text = f"The next page is at {targets[0][:200]}: another origin, or no cursor"
            raise errors.InvalidResponseError(text)
        return url


def _without_none(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


@dataclass
class Call(Generic[T]):
    """One call: `read` makes its result from the response and its JSON."""

    client: Core[Any]
    method: str
    url: httpx2.URL
    read: Callable[[httpx2.Response, Any], T]
    body: Any = None
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.client.deadline_s
        self._attempt = 1
        self._may_be_done = False

    def request(self) -> dict[str, Any]:
        """Return what httpx2's `stream` takes."""
        headers = self.client.headers | _without_none(**{"Idempotency-Key": self.idempotency_key})
        request = {"method": self.method, "url": self.url, "headers": headers, "json": self.body}
        return request | {"follow_redirects": False}

    def attempt_s(self) -> float:
        """Return how long the next attempt may take."""
        return max(0.001, min(self.client.timeout_s, self._deadline - time.monotonic()))

    @contextmanager
    def translate_failures(self) -> Iterator[None]:
        """Raise what httpx2 and the network raise as the clients' own errors."""
        try:
            yield
        except httpx2.LocalProtocolError as error:
            raise ValueError(str(error)) from error
        except (httpx2.TransportError, OSError) as error:
            reason = str(error) or "it took too long"
            text = f"{self.method} {self.url} got no response: {reason}"
            raise errors.NoResponseError(text) from error

    def result(self, response: httpx2.Response, content: bytes) -> T:
        """Return what a response stands for; the JSON of a 204 is None."""
        status = response.status_code
        # A deletion repeated because its outcome is unknown counts as done if it finds nothing.
        deleted = self.method == "DELETE" and self._may_be_done and status == httpx2.codes.NOT_FOUND
        if deleted or status == httpx2.codes.NO_CONTENT:
            return self.read(response, None)
        if not response.is_success:
            raise errors.ApiError.from_response(response, content)
        try:
            value = json.loads(content if len(content) <= MAX_BODY_BYTES else b"")
        except (ValueError, RecursionError) as error:
            text = f"{self.url}: something other than JSON of up to {MAX_BODY_BYTES} bytes"
            raise errors.InvalidResponseError(text) from error
        return self.read(response, value)

    def pause_s(self, error: errors.AnimalStoreError) -> float:
        """Return how long to wait before the next attempt; raise the error if there is none."""
        error.idempotency_key = self.idempotency_key
        limits, asked_s = self.client, error.retry_after_s or 0.0
        # Random, because other clients failed at the same time and were told the same.
        wait_s: float = asked_s + random.random() * min(10, 0.2 * 2**self._attempt)  # noqa: S311
        late = asked_s > limits.max_retry_after_s or time.monotonic() + wait_s > self._deadline
        if late or not error.may_pass or self._attempt >= limits.attempts:
            raise error
        self._attempt += 1
        self._may_be_done |= not isinstance(error, errors.TooManyRequestsError)
        _log.warning(
            "%s; attempt %d of %d in %.1f s", error, self._attempt, limits.attempts, wait_s
        )
        return wait_s
