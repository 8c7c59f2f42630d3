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
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Generic, Self, TypeVar

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
_MAX_LINK_CHARACTERS = 2**14
# A link's target, its relations, or another quoted text (RFC 8288, section 3). Whatever the text,
# no character is read more than a few times.
_LINK = re.compile(
    r'''<(?P<target>[^<>]*)>|;\s*rel\s*=\s*("(?P<quoted>[^"]*)"|(?P<bare>[^\s";,]+))|"[^"]*"''',
    re.IGNORECASE,
)
_log = logging.getLogger("animal_store_client")
T = TypeVar("T")
Http = TypeVar("Http", bound=httpx2.Client | httpx2.AsyncClient)


class Core(Generic[Http]):
    """What both clients share."""

    timeout_s: float
    deadline_s: float
    attempts: int
    max_retry_after_s: float
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
        attempts: int = 6,
        max_retry_after_s: float = 30.0,
        max_in_flight: int = 20,
        http_client: Http | None = None,
    ) -> None:
        """Make a client; it connects when it is first used.

        Args:
            base_url: Starts with `https://` and ends with `/v1`. One on this machine (`127.0.0.1`,
                `[::1]`, `localhost`) may start with `http://`; no proxy is used for it.
            api_key: Sent to this origin only.
            timeout_s: For each attempt; API Gateway answers within 29 seconds.
            deadline_s: For each call, over all attempts and pauses; in a list, for each page. It
                begins when the call has its turn: else of thousands, the last would always fail.
            attempts: How often a request is sent at most; creations carry an Idempotency-Key.
            max_retry_after_s: The longest `Retry-After` that the client waits for.
            max_in_flight: The number of calls at once, in a process or an event loop. The others
                wait for their turn, as long as it takes. A call keeps its turn while it pauses.
            http_client: With your own certificates or proxy, for instance. Its `auth` and `params`
                are not used. You must close it, and make a client with another in a process that
                is forked, or an event loop that begins, after its first use.

        Raises:
            TypeError: The http_client is not the httpx2 client that this one needs.
            ValueError: The base URL is invalid or not encrypted, the key cannot be a header, or
                nothing may be in flight.
        """
        base_url, api_key = map(str.__str__, (base_url, api_key))  # of an enum, the values
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
        self.timeout_s, self.deadline_s = timeout_s, deadline_s
        self.attempts, self.max_retry_after_s = attempts, max_retry_after_s
        self.headers = {
            "Authorization": f"Bearer {api_key}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # compressed, a body could be larger than it looks
            "User-Agent": f"animal-store-client/{__version__}",
        }
        self._max_in_flight = max_in_flight
        self._given = http_client
        # Reading the certificates takes long: once, and only if there will be TLS.
        unused = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls = httpx2.create_ssl_context() if self._pets.scheme == "https" else unused
        self._pools = {}

    def with_options(
        self,
        *,
        timeout_s: float | None = None,
        deadline_s: float | None = None,
        attempts: int | None = None,
        max_retry_after_s: float | None = None,
    ) -> Self:
        """Return a client with other limits, for one call or more, that shares the connections."""
        other = copy.copy(self)
        other.timeout_s = self.timeout_s if timeout_s is None else timeout_s
        other.deadline_s = self.deadline_s if deadline_s is None else deadline_s
        other.attempts = self.attempts if attempts is None else attempts
        if max_retry_after_s is not None:
            other.max_retry_after_s = max_retry_after_s
        return other

    def _open(self) -> Http:
        limit = self._max_in_flight
        return self._connect(
            verify=self._tls,
            trust_env=self._pets.host not in _LOOPBACK,  # else a proxy might get the key, in clear
            limits=httpx2.Limits(max_connections=limit, max_keepalive_connections=limit),
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
        link = response.headers.get("Link", "")
        if len(link) > _MAX_LINK_CHARACTERS:
            raise errors.InvalidResponseError(f"The header Link has {len(link)} characters")
        target = _next_target(link)
        if target is None:
            return None
        try:
            url = self._pets.join(target)
        except httpx2.InvalidURL:
            url = httpx2.URL()
        origin = (self._pets.scheme, self._pets.netloc, b"")
        if (url.scheme, url.netloc, url.userinfo) != origin or "cursor" not in url.params:
            text = f"The next page is at {target[:200]}: another origin, or no cursor"
            raise errors.InvalidResponseError(text)
        return url


def read_pet(response: httpx2.Response, value: Any) -> Pet:
    """Return the animal that is a response's JSON."""
    replayed = "Idempotency-Replayed" in response.headers
    return Pet.from_json(value, replayed=replayed, request_id=errors.request_id(response))


def _next_target(link: str) -> str | None:
    """Return the target of the first link in a header that leads to the next page."""
    target = None
    for part in _LINK.finditer(link):
        relations = part["quoted"] or part["bare"] or ""
        if part["target"] is not None:
            target = part["target"]
        elif "next" in relations.lower().split():
            return target
    return None


def is_uncompressed(response: httpx2.Response) -> bool:
    """Say whether a body is as long as it looks."""
    return response.headers.get("Content-Encoding", "identity").lower() == "identity"


@lru_cache(maxsize=256)
def _warn_once(text: str) -> None:
    _log.warning(text)


def _without_none(**members: Any) -> dict[str, Any]:
    """Return the members that have a value; one of an enum of strings as the string that it is."""
    return {
        name: str.__str__(value) if isinstance(value, str) else value
        for name, value in members.items()
        if value is not None
    }


@dataclass
class Call(Generic[T]):
    """One call: `read` makes its result from the response and its JSON."""

    client: Core[Any]
    method: str
    url: httpx2.URL
    read: Callable[[httpx2.Response, Any], T]
    body: Any = None
    idempotency_key: str | None = None
    media_type: str = "application/json"

    def __post_init__(self) -> None:
        self.start()
        self._attempt = 1
        self._may_be_done = False

    def start(self) -> None:
        """Let the deadline begin."""
        self._deadline = time.monotonic() + self.client.deadline_s

    def request(self, http: httpx2.Client | httpx2.AsyncClient, timeout_s: float) -> httpx2.Request:
        """Return the next attempt's request."""
        own = {"Idempotency-Key": self.idempotency_key}
        if self.body is not None:
            own["Content-Type"] = self.media_type
        headers = self.client.headers | _without_none(**own)
        request = http.build_request(
            self.method, self.url, headers=headers, json=self.body, timeout=timeout_s
        )
        request.url = self.url  # the http_client's `params` would take the place of the cursor
        return request

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
            failure = errors.NoResponseError(text)
            failure.may_pass = not _is_wrong_certificate(error)
            raise failure from error

    def result(self, response: httpx2.Response, content: bytes) -> T:
        """Return what a response stands for; the JSON of a 204 is None."""
        status = response.status_code
        self._warn_of_removal(response)
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

    def _warn_of_removal(self, response: httpx2.Response) -> None:
        """Log once that the operation is announced to go (RFC 9745, RFC 8594)."""
        since, until = (response.headers.get(name, "") for name in ("Deprecation", "Sunset"))
        if since or until:
            operation = f"{self.method} {re.sub('[0-9]+$', '{id}', self.url.path)}"
            text = f"{operation} is deprecated; Deprecation: {since[:100]}, Sunset: {until[:100]}"
            _warn_once(errors.printable(text))

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


def _is_wrong_certificate(error: BaseException | None) -> bool:
    """Say whether a failure goes back to a certificate; trying again does not change it."""
    while error and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None
