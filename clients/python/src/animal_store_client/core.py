"""The calls, without input and output: requests, what a response means, when to try again."""

import copy
import json
import logging
import random
import re
import reprlib
import ssl
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Generic, Self, TypedDict, TypeVar, Unpack

import httpx2

from animal_store_client import errors
from animal_store_client.pet import AnyStatus, Page, Pet

try:
    __version__ = version("animal-store-client")
except PackageNotFoundError:  # imported from a checkout that is not installed
    __version__ = "0"

MAX_BODY_BYTES = 2**20  # a page of 100 animals with the longest names takes about a tenth
# Without what an http_client may add of its own: its authentication would replace the key.
SEND: dict[str, Any] = {"stream": True, "auth": None, "follow_redirects": False}
_BASE_URL = re.compile(r"https?://[^\s/\\?#@]+(/[^\s\\?#]+)?/v1/?")
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_log = logging.getLogger("animal_store_client")
T = TypeVar("T")
Http = TypeVar("Http", bound=httpx2.Client | httpx2.AsyncClient)


class Options(TypedDict, total=False):
    """Limits that one call may have of its own: see `Client`."""

    timeout_s: float
    deadline_s: float
    attempts: int
    max_retry_after_s: float
    max_wait_s: float | None


@dataclass(frozen=True)
class Limits:
    """A client's own."""

    timeout_s: float
    deadline_s: float
    attempts: int
    max_retry_after_s: float
    max_wait_s: float | None

    def __post_init__(self) -> None:
        for name, limit in vars(self).items():
            if limit is None and name != "max_wait_s":
                raise TypeError(f"{name} is None: it must be a number")


class Core(Generic[Http]):
    """What both clients share."""

    limits: Limits
    headers: dict[str, str]
    _connect: type[Http]
    _pools: dict[Any, Any]

    def __init__(  # noqa: PLR0913
        self,
        base_url: str,
        api_key: str,
        *,
        timeout_s: float = 35.0,
        deadline_s: float = 120.0,
        attempts: int = 7,
        max_retry_after_s: float = 30.0,
        max_wait_s: float | None = None,
        max_in_flight: int = 20,
        http_client: Http | None = None,
    ) -> None:
        """Make a client; it connects when it is first used.

        Args:
            base_url: Starts with `https://` and ends with `/v1`. One on this machine (`127.0.0.1`,
                `[::1]`, `localhost`) may start with `http://`; no proxy is used for it.
            api_key: Sent to this origin only.
            timeout_s: For each attempt; API Gateway answers within 29 seconds. A `Client` with an
                `http_client` may exceed it.
            deadline_s: For each call, over all attempts and pauses; in a list, for each page. It
                begins when the call has its turn: else of thousands, the last would always fail.
            attempts: How often a request is sent at most; creations carry an Idempotency-Key. The
                pauses between seven attempts take 11 seconds or more.
            max_retry_after_s: The longest `Retry-After` that the client waits for.
            max_wait_s: For each call, until it has its turn; None for as long as that takes.
            max_in_flight: The number of creations under way in a process or an event loop, and the
                number of reads. The others wait for their turn. A call keeps its turn while it
                pauses: if others took it, a throttled service would be sent even more requests.
            http_client: With your own certificates or proxy, for instance. Its `auth` and `params`
                are not used. You must close it, and make a client with another in a process that
                is forked, or an event loop that begins, after its first use.

        Raises:
            TypeError: The http_client is not the httpx2 client that this one needs, or a limit
                is None.
            ValueError: The base URL is invalid or not encrypted, the key cannot be a header, or
                nothing may be in flight.
        """
        if not _BASE_URL.fullmatch(base_url):
            raise ValueError("A base URL is https://HOST/v1 (http:// for this machine alone)")
        self._pets = httpx2.URL(f"{base_url.rstrip('/')}/pets")
        host = self._pets.host
        if self._pets.scheme == "http" and host not in _LOOPBACK:
            raise ValueError(f"The base URL http://{host} exposes the key in transit: use https://")
        if not re.fullmatch("[!-~]+", api_key):
            raise ValueError("The API key is empty, or has a character that no key has")
        if max_in_flight < 1:
            raise ValueError("max_in_flight is less than 1: no call would ever have its turn")
        if not isinstance(http_client, self._connect | None):
            raise TypeError(f"http_client is a {type(http_client)}, not a {self._connect}")
        self.limits = Limits(timeout_s, deadline_s, attempts, max_retry_after_s, max_wait_s)
        self.headers = {
            "Authorization": f"Bearer {api_key}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # compressed, a body could be larger than it looks
            "User-Agent": f"animal-store-client/{__version__}",
        }
        self._max_in_flight = max_in_flight
        self._given = http_client
        self._may_close = http_client is None
        # Reading the certificates takes long: once, and only if there will be TLS.
        unused = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls = httpx2.create_ssl_context() if self._pets.scheme == "https" else unused
        self._pools = {}

    def with_options(self, **limits: Unpack[Options]) -> Self:
        """Return a client with other limits. It shares the connections and does not close them."""
        other = copy.copy(self)
        other._may_close = False  # noqa: SLF001
        other.limits = replace(self.limits, **limits)
        return other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._pets).removesuffix('/pets')!r})"

    def _open(self) -> Http:
        return self._connect(
            verify=self._tls,
            trust_env=self._pets.host not in _LOOPBACK,  # else a proxy might get the key, in clear
            limits=httpx2.Limits(),  # none: the turns limit the connections
        )

    def _refuse_second_owner(self, owner: object) -> None:
        """Raise RuntimeError if the caller's http_client is another process's or event loop's."""
        # Another thread of the owner may just have made its pool.
        if self._given and self._pools.keys() - {owner}:
            raise RuntimeError(
                "The http_client was first used in another process or event loop, whose"
                " connections cannot be used here: make a client with another http_client"
            )

    def _pages(self, status: AnyStatus, size: int, cursor: str | None) -> Iterator["Call[Page]"]:
        """Yield the call for each page; the next is known once the previous one has its result."""
        query = _without_none(limit=size, status=status, cursor=cursor)
        url: httpx2.URL | None = self._pets.copy_merge_params(query)
        seen: set[str] = set()

        def read(response: httpx2.Response, value: Any) -> Page:
            nonlocal url
            if not isinstance(value, list):
                raise errors.InvalidResponseError(
                    f"The response is not a page: {reprlib.repr(value)}"
                )
            url = self._next_url(response)
            if str(url) in seen:
                raise errors.InvalidResponseError("The next page is said to be an earlier one")
            pets = tuple(read_pet(response, pet) for pet in value)
            cursor = url.params["cursor"] if url else None
            return Page(pets, cursor, errors.request_id(response))

        while url:
            seen.add(str(url))
            yield Call(self, "GET", url, read)

    def _create(self, name: str, category: int, status: AnyStatus, key: str | None) -> "Call[Pet]":
        body = _without_none(name=name, categoryId=category, status=status)
        return Call(
            self, "POST", self._pets, read_pet, body, str(uuid.uuid4()) if key is None else key
        )

    def _get(self, pet_id: int) -> "Call[Pet]":
        return Call(self, "GET", self._pet(pet_id), read_pet)

    def _pet(self, pet_id: int) -> httpx2.URL:
        return self._pets.copy_with(path=f"{self._pets.path}/{pet_id}")

    def _next_url(self, response: httpx2.Response) -> httpx2.URL | None:
        """Return the URL of the next page; never one that would take the key to another origin."""
        link = response.links.get("next")
        if link is None:
            return None
        try:
            url = self._pets.join(link["url"])
        except httpx2.InvalidURL:
            url = httpx2.URL()
        origin = (self._pets.scheme, self._pets.netloc, b"")
        if (url.scheme, url.netloc, url.userinfo) != origin or "cursor" not in url.params:
            text = f"The next page is at {link['url'][:200]}: another origin, or no cursor"
            raise errors.InvalidResponseError(text)
        return url


def read_pet(response: httpx2.Response, value: Any) -> Pet:
    """Return the animal that is a response's JSON."""
    replayed = "Idempotency-Replayed" in response.headers
    return Pet.from_json(value, replayed=replayed, request_id=errors.request_id(response))


def is_uncompressed(response: httpx2.Response) -> bool:
    """Say whether a body is as long as it looks."""
    return response.headers.get("Content-Encoding", "identity").lower() == "identity"


def _without_none(**members: Any) -> dict[str, Any]:
    """Return the members that have a value."""
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
        self.start()
        self._attempt = 1

    def start(self) -> None:
        """Let the deadline begin."""
        self._deadline = time.monotonic() + self.client.limits.deadline_s

    def request(self, http: httpx2.Client | httpx2.AsyncClient, timeout_s: float) -> httpx2.Request:
        """Return the next attempt's request."""
        own = {"Idempotency-Key": self.idempotency_key}
        if self.body is not None:
            own["Content-Type"] = "application/json"
        headers = self.client.headers | _without_none(**own)
        request = http.build_request(
            self.method, self.url, headers=headers, json=self.body, timeout=timeout_s
        )
        request.url = self.url  # the http_client's `params` would take the place of the cursor
        return request

    def attempt_s(self) -> float:
        """Return how long the next attempt may take."""
        return max(0.001, min(self.client.limits.timeout_s, self._deadline - time.monotonic()))

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
            failure = errors.NoResponseError(text)
            # OpenSSL's name for a certificate that is wrong; trying again does not change it.
            failure.may_pass = "CERTIFICATE_VERIFY_FAILED" not in reason
            raise failure from error

    def result(self, response: httpx2.Response, content: bytes) -> T:
        """Return what a response stands for."""
        if not response.is_success:
            raise errors.ApiError.from_response(response, content)
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            text = f"{self.url}: something other than JSON of up to {MAX_BODY_BYTES} bytes"
            raise errors.InvalidResponseError(text) from error
        return self.read(response, value)

    def without_turn(self) -> errors.AnimalStoreError:
        """Return the error of a call that waited for its turn in vain."""
        text = f"{self.method} {self.url} was not sent: it had no turn within max_wait_s"
        return self._identify(errors.NoResponseError(text))

    def _identify(self, error: errors.AnimalStoreError) -> errors.AnimalStoreError:
        """Let an error say how its call can be repeated."""
        error.idempotency_key = self.idempotency_key
        error.cursor = self.url.params.get("cursor")
        return error

    def pause_s(self, error: errors.AnimalStoreError) -> float:
        """Return how long to wait before the next attempt; raise the error if there is none."""
        limits, asked_s = self.client.limits, error.retry_after_s or 0.0
        step_s: float = min(10.0, 0.2 * 2**self._attempt)
        # Random, because other clients failed at the same time and were told the same; at least
        # half of the step, so that all attempts together outlast a restart of the service.
        wait_s = asked_s + random.uniform(step_s / 2, step_s)  # noqa: S311
        late = asked_s > limits.max_retry_after_s or time.monotonic() + wait_s > self._deadline
        if late or not error.may_pass or self._attempt >= limits.attempts:
            raise self._identify(error)
        self._attempt += 1
        _log.warning(
            "%s; attempt %d of %d in %.1f s", error, self._attempt, limits.attempts, wait_s
        )
        return wait_s
