"""The part that both clients share: requests, results, and when to try again."""

import copy
import json
import logging
import os
import random
import re
import socket
import ssl
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Generic, Self, TypedDict, TypeVar, Unpack
from urllib.request import proxy_bypass

import httpx2

from animal_store_client import errors
from animal_store_client.pet import AnyStatus, Page, Pet

try:
    __version__ = version("animal-store-client")
except PackageNotFoundError:  # imported from a checkout that is not installed
    __version__ = "0"

MAX_BODY_BYTES = 2**20  # a page of 100 animals with the longest names takes about a tenth
MAX_CREATION_S = 30.0
# An http_client's authentication would replace the key; a redirect would take it elsewhere.
SEND: dict[str, Any] = {"stream": True, "auth": None, "follow_redirects": False}
_BASE_URL = re.compile(r"https?://[^\s/\\?#@]+(/[^\s\\?#]+)?/v1/?")
# The host's name is unknown, the host speaks no TLS, or its certificate is invalid.
_WRONG_ADDRESS = re.compile(rf"\[Errno {socket.EAI_NONAME}\]|\[SSL: (?!UNEXPECTED_EOF)")
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
log: logging.Logger = logging.getLogger("animal_store_client")
T = TypeVar("T")
Http = TypeVar("Http", bound=httpx2.Client | httpx2.AsyncClient)


class Limits(TypedDict, total=False):
    """The options of `with_options`; `Client` describes them."""

    timeout_s: float
    deadline_s: float
    attempts: int
    max_retry_after_s: float
    max_wait_s: float | None


class Core(Generic[Http]):
    """The base of both clients."""

    has_answered = False
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
                `[::1]`, `localhost`) may start with `http://`, and is called without a proxy.
            api_key: It is sent to this origin only.
            timeout_s: The time limit of an attempt; API Gateway answers within 29 seconds. A
                `Client` applies it to each step separately: connecting to an address, TLS, a read
                of the headers, the body. It cannot limit the look-up of the host's name.
            deadline_s: The time limit of a call with all its attempts and pauses; in a list, of
                each page. It starts when the call has its slot: the time that thousands of calls
                wait for each other does not count.
            attempts: How often a request is sent at most. The pauses between seven attempts take
                11 seconds or more.
            max_retry_after_s: The longest `Retry-After` that the client waits for.
            max_wait_s: How long a call waits for its slot; None for no limit.
            max_in_flight: How many creations, and how many reads, are under way at once in a
                process (`Client`) or an event loop (`AsyncClient`). The others wait for a slot.
                A call keeps its slot while it pauses: if others took it, a throttled service would
                be sent even more requests.
            http_client: An httpx2 client of your own, for instance with certificates or a proxy.
                Its `auth`, `params` and `follow_redirects` are not used. Close it yourself, and use
                it in one process and one event loop only.

        Raises:
            TypeError: An argument other than `max_wait_s` and `http_client` is None, or the
                http_client is a `Client` where an `AsyncClient` is needed, or the reverse.
            ValueError: `base_url` is malformed or not encrypted, `api_key` cannot be sent as a
                header, `max_in_flight` is less than 1, or the environment has a proxy or
                certificates that cannot be used.
        """
        self.limits: Limits = {
            "timeout_s": timeout_s,
            "deadline_s": deadline_s,
            "attempts": attempts,
            "max_retry_after_s": max_retry_after_s,
            "max_wait_s": max_wait_s,
        }
        _refuse_none(base_url=base_url, api_key=api_key, **self.limits | {"max_wait_s": 0})
        self._pets = _pets_url(base_url)
        if not api_key:
            raise ValueError("The API key is empty")
        if wrong := re.search("[^!-~]", api_key):
            raise ValueError(f'The API key has a {wrong[0]!r}: leave out "Bearer" and line ends')
        if max_in_flight < 1:
            raise ValueError("max_in_flight is less than 1: no call would ever have its turn")
        if not isinstance(http_client, self._connect | None):
            raise TypeError(f"http_client is a {type(http_client)}, not a {self._connect}")
        self.headers: dict[str, str] = {
            "Authorization": f"Bearer {api_key}",
            "Accept-Encoding": "identity",  # a small compressed body could unpack to a huge one
            "User-Agent": f"animal-store-client/{__version__}",
        }
        self._max_in_flight = max_in_flight
        self._http_client = http_client
        self._may_close = http_client is None
        self._pools = {}
        if http_client is None:
            self._read_environment()

    def with_options(self, **limits: Unpack[Limits]) -> Self:
        """Return a client with other limits. It shares this one's connections, and closes none."""
        other = copy.copy(self)
        other._may_close = False  # noqa: SLF001
        other.limits = {**self.limits, **limits}
        return other

    def _read_environment(self) -> None:
        """Read the certificates, once; raise ValueError if they or a proxy cannot be used."""
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            if self._pets.scheme == "https":
                self._tls = httpx2.create_ssl_context()
            self._open()
        except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
            kind = "SSL_CERT_.*" if isinstance(error, OSError) else "(ALL|HTTPS?)_PROXY"
            names = [name for name in os.environ if re.fullmatch(kind, name.upper())]
            raise ValueError(f"{' or '.join(names)} of the environment: {error}") from error

    def _open(self) -> Http:
        host = self._pets.host
        return self._connect(
            verify=self._tls,
            # A proxy for this machine's own service would get the key in clear.
            trust_env=host not in _LOOPBACK and not proxy_bypass(host),
            limits=httpx2.Limits(),  # none: the semaphores limit the calls
        )

    def _pages(self, status: AnyStatus, size: int, cursor: str | None) -> Iterator["Call[Page]"]:
        """Yield a call for each page; a call must have its result before the next is asked for."""
        query = _without_none(limit=size, status=status, cursor=cursor)
        url: httpx2.URL | None = self._pets.copy_merge_params(query)
        visited: set[str] = set()

        def read(response: httpx2.Response, value: Any) -> Page:
            nonlocal url
            if not isinstance(value, list):
                raise errors.InvalidResponseError(f"The response is not a page: {value!r:.200}")
            url = self._next_url(response)
            if str(url) in visited:
                raise errors.InvalidResponseError("The next page is an earlier one")
            pets = tuple(read_pet(response, pet) for pet in value)
            cursor = url.params["cursor"] if url else None
            return Page(pets, cursor, errors.request_id(response))

        while url:
            visited.add(str(url))
            yield Call(self, "GET", url, read)

    def _create(self, name: str, category: int, status: AnyStatus, key: str | None) -> "Call[Pet]":
        key = str(uuid.uuid4()) if key is None else key
        if not re.fullmatch("[!-~]{1,255}", key):
            raise ValueError(f"idempotency_key {key!r} is not 1 to 255 visible ASCII characters")
        body = _without_none(name=name, categoryId=category, status=status)
        return Call(self, "POST", self._pets, read_pet, body, key)

    def _get(self, pet_id: int) -> "Call[Pet]":
        return Call(self, "GET", httpx2.URL(f"{self._pets}/{pet_id}"), read_pet)

    def _next_url(self, response: httpx2.Response) -> httpx2.URL | None:
        """Return the URL of the next page; never one that would take the key to another origin."""
        link = response.links.get("next")
        if not link:
            return None
        try:
            url = self._pets.join(link["url"])
        except httpx2.InvalidURL:
            url = httpx2.URL()
        origin = (self._pets.scheme, self._pets.netloc, b"")
        if (url.scheme, url.netloc, url.userinfo) != origin or "cursor" not in url.params:
            raise errors.InvalidResponseError(f"The next page is not this API's: {link['url']}")
        return url


def _refuse_none(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is None:
            raise TypeError(f"{name} is None: was it in an environment variable that is not set?")


def _pets_url(base_url: str) -> httpx2.URL:
    """Return the list's URL; raise ValueError if no key may be sent to the base URL."""
    if not _BASE_URL.fullmatch(base_url):
        raise ValueError(f'base URL "{base_url}": it must have the form https://HOST/v1')
    url = httpx2.URL(f"{base_url.rstrip('/')}/pets")
    if url.scheme == "http" and url.host not in _LOOPBACK:
        raise ValueError(f'base URL "{base_url}": http:// sends the key in clear, use https://')
    return url


def read_pet(response: httpx2.Response, value: Any) -> Pet:
    """Return the animal in a response's JSON."""
    replayed = "Idempotency-Replayed" in response.headers
    return Pet.from_json(value, replayed=replayed, request_id=errors.request_id(response))


def _without_none(**members: Any) -> dict[str, Any]:
    """Return the members that have a value."""
    return {name: value for name, value in members.items() if value is not None}


@dataclass
class Call(Generic[T]):
    """A call of the API. `read` makes its result from the response and its JSON."""

    client: Core[Any]
    method: str
    url: httpx2.URL
    read: Callable[[httpx2.Response, Any], T]
    body: Any = None
    idempotency_key: str | None = None
    attempt: int = 1

    def start(self) -> None:
        """Start the time of the deadline."""
        self._deadline = time.monotonic() + self.client.limits["deadline_s"]

    def request(self, http: httpx2.Client | httpx2.AsyncClient, timeout_s: float) -> httpx2.Request:
        """Return the next attempt's request."""
        headers = {**self.client.headers, "Idempotency-Key": self.idempotency_key}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        request = http.build_request(
            self.method,
            self.url,
            headers=_without_none(**headers),
            json=self.body,
            timeout=timeout_s,
        )
        request.url = self.url  # the http_client's `params` would replace the cursor
        return request

    def attempt_s(self) -> float:
        """Return how long the next attempt may take."""
        return max(0.001, min(self.client.limits["timeout_s"], self._deadline - time.monotonic()))

    @contextmanager
    def translate_failures(self) -> Iterator[None]:
        """Raise failures of httpx2 and the network as NoResponseError."""
        try:
            yield
        except (httpx2.RequestError, TimeoutError) as error:
            reason = str(error) or "it took too long"
            text = f"{self.method} {self.url} got no response: {reason}"
            failure = errors.NoResponseError(text)
            failure.may_pass = self.client.has_answered or not _WRONG_ADDRESS.match(reason)
            raise failure from error

    def result(self, response: httpx2.Response, content: bytes) -> T:
        """Return the result in a response, or raise the error that it reports."""
        self.client.has_answered = True
        if not response.is_success:
            raise errors.ApiError.from_response(response, content)
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            text = f"{self.url} returned no JSON, or more than {MAX_BODY_BYTES} bytes"
            raise errors.InvalidResponseError(text) from error
        return self.read(response, value)

    def without_turn(self) -> errors.AnimalStoreError:
        """Return the error of a call that got no slot in time."""
        text = f"{self.method} {self.url} was not sent: it had no turn within max_wait_s"
        return self._identify(errors.NoResponseError(text))

    def _identify(self, error: errors.AnimalStoreError) -> errors.AnimalStoreError:
        """Add what repeats the call to its error: the idempotency key or the cursor."""
        error.idempotency_key = self.idempotency_key
        error.cursor = self.url.params.get("cursor")
        return error

    def prepare_retry(self, error: errors.AnimalStoreError) -> float:
        """Return the pause before the next attempt, in seconds; raise the error if it is final."""
        limits, retry_after_s = self.client.limits, error.retry_after_s or 0.0
        step_s = min(10.0, 0.2 * 2**self.attempt)
        # It is random, because other clients failed at the same time and got the same response, and
        # at least half of the step, so that all attempts together outlast a restart of the service.
        pause_s = retry_after_s + random.uniform(step_s / 2, step_s)  # noqa: S311
        is_late = time.monotonic() + pause_s > self._deadline
        is_too_long = retry_after_s > limits["max_retry_after_s"]
        if is_late or is_too_long or not error.may_pass or self.attempt >= limits["attempts"]:
            raise self._identify(error)
        self.attempt += 1
        log.warning(
            "%s; attempt %d of %d in %.1f s", error, self.attempt, limits["attempts"], pause_s
        )
        return pause_s
