"""The part that `Client` and `AsyncClient` share: requests, responses and retries."""

# ruff: noqa: SLF001 (a Call reads its client's private attributes)

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
from urllib.request import getproxies, proxy_bypass

import httpx2

from animal_store_client import errors
from animal_store_client.pet import AnyStatus, Page, Pet

try:
    __version__ = version("animal-store-client")
except PackageNotFoundError:  # the package is in a checkout, not installed
    __version__ = "0"

MAX_BODY_BYTES = 2**20  # about six times the size of the largest page
MAX_CREATION_S = 30.0  # an animal may appear this long after its creation was sent
# With these, your own http_client neither replaces the key (`auth`) nor follows redirects.
SEND: dict[str, Any] = {"stream": True, "auth": None, "follow_redirects": False}
_BASE_URL = re.compile(
    r"""(?x)
    https?://
    (\[[^\s\]]+\]|[^\s/\\?#@:\[\]]+)
    (:(
        # at most 65535: a system may use only the last 16 bits of a larger number
        [0-9]{0,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]
    ))?
    (/[^\s\\?#]+)?
    /v1/?
    """
)
# Errors that no retry mends, because most come from a wrong base URL: an unknown host name, an
# answer that is not TLS, or an invalid certificate.
_WRONG_ADDRESS = re.compile(rf"\[Errno {socket.EAI_NONAME}\]|\[SSL: (?!UNEXPECTED_EOF)")
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
log: logging.Logger = logging.getLogger("animal_store_client")
T = TypeVar("T")
HttpClient = TypeVar("HttpClient", bound=httpx2.Client | httpx2.AsyncClient)


class Limits(TypedDict, total=False):
    """The limits that `with_options` can change; `Core.__init__` describes them."""

    timeout_s: float
    deadline_s: float
    attempts: int
    max_retry_after_s: float
    max_wait_s: float | None


class Core(Generic[HttpClient]):
    """The base class of `Client` and `AsyncClient`."""

    _server_answered = False
    _http_class: type[HttpClient]
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
        http_client: HttpClient | None = None,
    ) -> None:
        """Make a client; the client connects at its first call.

        Args:
            base_url: The URL of the service; it starts with `https://` and ends with `/v1`. For a
                service on your own machine (`127.0.0.1`, `[::1]`, `localhost`) you may write
                `http://`; only your own `http_client` then uses a proxy.
            api_key: The API key. The client sends it only to the origin of `base_url`.
            timeout_s: The time limit of an attempt, in seconds. API Gateway answers within 29 s.
                `Client` restarts the limit for each address and for the TLS handshake, and can't
                limit the look-up of the host name.
            deadline_s: The time limit of a call with all its attempts and pauses, in seconds. Each
                page of a list is a call of its own. Waiting for `max_in_flight` doesn't count.
            attempts: The maximum number of attempts. The pauses between seven attempts take at
                least 11 seconds in total.
            max_retry_after_s: The longest wait, in seconds, that a response may ask for with
                `Retry-After`. If one asks for more, the call fails at once.
            max_wait_s: The longest time, in seconds, that a call waits for its turn (see
                `max_in_flight`); None for no limit.
            max_in_flight: How many creations, and how many reads, may run at once in each process
                (`Client`) or event loop (`AsyncClient`). Further calls wait for their turn.
                A call that pauses before a retry still counts, to spare a throttled service.
            http_client: An httpx2 client of your own, for instance with certificates or a proxy.
                Its `auth`, `cookies`, `params` and `follow_redirects` aren't used. Use it only
                here, in only one process and event loop, and close it yourself.

        Raises:
            TypeError: An argument other than `max_wait_s` and `http_client` is None, or
                `http_client` has the wrong type: `Client` needs an `httpx2.Client`, and
                `AsyncClient` needs an `httpx2.AsyncClient`.
            ValueError: `base_url` is malformed, or uses `http://` for another machine; `api_key`
                is empty, or has a character that isn't visible ASCII; `max_in_flight` is less than
                1; or an environment variable names a proxy or certificates that can't be used.
        """
        self._limits: Limits = {
            "timeout_s": timeout_s,
            "deadline_s": deadline_s,
            "attempts": attempts,
            "max_retry_after_s": max_retry_after_s,
            "max_wait_s": max_wait_s,
        }
        _refuse_none(base_url=base_url, api_key=api_key, **self._limits | {"max_wait_s": 0})
        self._list_url = _pets_url(base_url)
        if not api_key:
            raise ValueError("The API key is empty")
        if wrong := re.search("[^!-~]", api_key):
            raise ValueError(f'The API key has a {wrong[0]!r}: leave out "Bearer" and line ends')
        if max_in_flight < 1:
            raise ValueError("max_in_flight is less than 1: no call would ever get a slot")
        if not isinstance(http_client, self._http_class | None):
            raise TypeError(f"http_client is a {type(http_client)}, not a {self._http_class}")
        self._headers = {
            "Authorization": f"Bearer {api_key}",
            "Accept-Encoding": "identity",  # a small compressed body could unpack to a huge one
            "User-Agent": f"animal-store-client/{__version__}",
        }
        self._max_in_flight = max_in_flight
        self._http_client = http_client
        self._may_close = http_client is None
        self._pools = {}
        if http_client is None:
            self._load_certificates()

    def with_options(self, **limits: Unpack[Limits]) -> Self:
        """Return a client that has other limits, and shares this client's connections."""
        client = copy.copy(self)
        client._may_close = False
        client._limits = self._limits | limits
        return client

    def _load_certificates(self) -> None:
        """Load the certificates; raise ValueError if an environment variable is unusable."""
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            if self._list_url.scheme == "https":
                self._tls = httpx2.create_ssl_context()
            self._new_http()
        except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
            pattern = "SSL.*" if isinstance(error, OSError) else "(ALL|HTTPS)_PROXY"
            variables = [name for name in os.environ if re.fullmatch(pattern, name.upper())]
            raise ValueError(f"Environment variable {' or '.join(variables)}: {error}") from error

    def _new_http(self) -> HttpClient:
        address = f"{self._list_url.raw_host.decode()}:{self._list_url.port or 443}"
        # Use no proxy for a service on this machine: over http, the proxy would get the key.
        is_direct = self._list_url.host in _LOOPBACK or proxy_bypass(address)
        proxies = getproxies()
        proxy = None if is_direct else proxies.get("https") or proxies.get("all")
        if proxy and "://" not in proxy:
            proxy = f"http://{proxy}"
        return self._http_class(
            verify=self._tls,
            proxy=proxy,
            trust_env=False,  # httpx2 itself fails at a name with `xn--` in NO_PROXY
            limits=httpx2.Limits(),  # no limits: the semaphores limit the calls
        )

    def _page(self, status: AnyStatus, size: int, cursor: str | None) -> "Call[Page]":
        query = _drop_none(limit=size, status=status, cursor=cursor)
        return Call(self, "GET", self._list_url.copy_merge_params(query), read_page, {})

    def _create(self, name: str, category: int, status: AnyStatus, key: str | None) -> "Call[Pet]":
        key = str(uuid.uuid4()) if key is None else key
        if not re.fullmatch("[!-~]{1,255}", key):
            raise ValueError(f"idempotency_key {key!r} is not 1 to 255 visible ASCII characters")
        # NaN and lone surrogates are sent as they are: the service says what's wrong with them.
        body = json.dumps(_drop_none(name=name, categoryId=category, status=status))
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        return Call(self, "POST", self._list_url, read_pet, headers, body)

    def _get(self, pet_id: int) -> "Call[Pet]":
        return Call(self, "GET", httpx2.URL(f"{self._list_url}/{pet_id}"), read_pet, {})


def _refuse_none(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is None:
            raise TypeError(f"{name} is None: was it in an environment variable that is not set?")


def _pets_url(base_url: str) -> httpx2.URL:
    """Return the list's URL; raise ValueError if the API key can't or mustn't be sent there."""
    if not _BASE_URL.fullmatch(base_url):
        raise ValueError(f'base URL "{base_url}": it must look like https://HOST/v1')
    try:
        url = httpx2.URL(f"{base_url.rstrip('/')}/pets")
        url.raw_host.decode().encode("idna")  # refuses labels that DNS would refuse
    except (httpx2.InvalidURL, ValueError) as error:
        raise ValueError(f'base URL "{base_url}": {error}') from error
    if url.scheme == "http" and url.host not in _LOOPBACK:
        raise ValueError(f'base URL "{base_url}": http:// sends the key unencrypted, use https://')
    return url


def read_pet(response: httpx2.Response, value: Any) -> Pet:
    """Return the animal in a response's JSON."""
    replayed = "Idempotency-Replayed" in response.headers
    return Pet.from_json(value, replayed=replayed, request_id=errors.read_request_id(response))


def read_page(response: httpx2.Response, value: Any) -> Page:
    """Return the page in a response's JSON.

    Only the cursor of the next page's URL is used, so the API key is sent only to the base URL.
    """
    if not isinstance(value, list):
        raise errors.InvalidResponseError(f"The response is not a page: {value!r:.200}")
    cursor = None
    if link := response.links.get("next"):
        cursor = httpx2.QueryParams(link["url"].partition("?")[2]).get("cursor")
        if not cursor or cursor == response.url.params.get("cursor"):
            raise errors.InvalidResponseError(f"The next page has no new cursor: {link['url']}")
    pets = tuple(read_pet(response, pet) for pet in value)
    return Page(pets, cursor, errors.read_request_id(response))


def _drop_none(**arguments: Any) -> dict[str, Any]:
    """Return the arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}


@dataclass
class Call(Generic[T]):
    """A call of the API. The function `read` makes the result from the response and its JSON."""

    client: Core[Any]
    method: str
    url: httpx2.URL
    read: Callable[[httpx2.Response, Any], T]
    headers: dict[str, str]
    body: str | None = None
    attempt: int = 1

    def start(self) -> None:
        """Start to count the time that `deadline_s` limits."""
        self._deadline = time.monotonic() + self.client._limits["deadline_s"]

    def build_request(
        self, http: httpx2.Client | httpx2.AsyncClient, timeout_s: float
    ) -> httpx2.Request:
        """Return the next attempt's request."""
        # `http.build_request` would add the cookies and `params` that the httpx2 client keeps.
        headers = http.headers.copy()
        headers.update(self.client._headers | self.headers)
        return httpx2.Request(
            self.method,
            self.url,
            headers=headers,
            content=self.body,
            extensions={"timeout": httpx2.Timeout(timeout_s).as_dict()},
        )

    def next_timeout_s(self) -> float:
        """Return how many seconds the next attempt may take."""
        return max(0.001, min(self.client._limits["timeout_s"], self._deadline - time.monotonic()))

    @contextmanager
    def translate_failures(self) -> Iterator[None]:
        """Turn timeouts and httpx2's RequestErrors into NoResponseError."""
        try:
            yield
        except (httpx2.RequestError, TimeoutError) as error:
            reason = str(error) or "the connection broke or took too long"
            failure = errors.NoResponseError(
                f"{self.method} {self.url} got no usable response: {reason}"
            )
            failure.is_temporary = self.client._server_answered or not _WRONG_ADDRESS.match(reason)
            raise failure from error

    def read_result(self, response: httpx2.Response, content: bytes) -> T:
        """Return the result in a response, or raise the error that the response reports."""
        self.client._server_answered = True
        if not response.is_success:
            raise errors.ApiError.from_response(response, content)
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            message = f"{self.url} returned no JSON, or more than {MAX_BODY_BYTES} bytes"
            raise errors.InvalidResponseError(message) from error
        return self.read(response, value)

    def no_slot_error(self) -> errors.AnimalStoreError:
        """Return the error of a call whose turn did not come within `max_wait_s`."""
        message = f"{self.method} {self.url} was not sent: its turn did not come in max_wait_s"
        return self._add_key_and_cursor(errors.NoResponseError(message))

    def _add_key_and_cursor(self, error: errors.AnimalStoreError) -> errors.AnimalStoreError:
        """Give an error the idempotency key and cursor that the caller needs to repeat the call."""
        error.idempotency_key = self.headers.get("Idempotency-Key")
        error.cursor = self.url.params.get("cursor")
        return error

    def prepare_retry(self, error: errors.AnimalStoreError) -> float:
        """Return the seconds until the next attempt; raise the error if no attempt follows."""
        limits, retry_after_s = self.client._limits, error.retry_after_s or 0.0
        step_s = min(10.0, 0.2 * 2**self.attempt)
        # Spread the retries of clients that failed together. But pause for at least half a step, so
        # that the attempts outlast a restart of the service.
        pause_s = retry_after_s + random.uniform(step_s / 2, step_s)  # noqa: S311
        is_late = time.monotonic() + pause_s > self._deadline
        is_too_long = retry_after_s > limits["max_retry_after_s"]
        if is_late or is_too_long or not error.is_temporary or self.attempt >= limits["attempts"]:
            raise self._add_key_and_cursor(error)
        self.attempt += 1
        log.warning(
            "%s; attempt %d of %d in %.1f s", error, self.attempt, limits["attempts"], pause_s
        )
        return pause_s
