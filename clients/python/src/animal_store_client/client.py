"""The client: one method per operation, and what they share (attempts, bounds, paging)."""

import json
import random
import time
import uuid
from collections.abc import Iterator
from typing import Any, Self

import httpx
import stamina
from typing_extensions import deprecated

from animal_store_client.errors import CLASSES, ApiError, InvalidResponseError, NoResponseError
from animal_store_client.pet import Pet, PetStatus

_MAX_BODY_BYTES = 2**20  # a page of 100 animals with the longest names takes about a tenth
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class Client:
    """Calls the API; may be shared by threads. Close it, or use it as a context manager.

    Args:
        base_url: Starts with `https://` and ends with `/v1`. This machine's own (`http://127.0.0.1`, `http://[::1]`,
            `http://localhost`) may do without encryption.
        api_key: Sent to this origin only.
        timeout_s: For each attempt; API Gateway answers within 29 seconds.
        attempts: How often a request is sent at most. Requests that may be repeated are: every creation carries an
            Idempotency-Key.
        max_retry_after_s: The longest `Retry-After` that is waited for.

    Raises:
        ValueError: The base URL is not one or not encrypted, or the key has characters that a header cannot carry.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout_s: float = 35.0,
        attempts: int = 6,
        max_retry_after_s: float = 30.0,
    ) -> None:
        self._pets = httpx.URL(f"{base_url.rstrip('/')}/pets")
        scheme, host = self._pets.scheme, self._pets.host
        others = self._pets.userinfo or self._pets.query or self._pets.fragment
        if scheme not in {"http", "https"} or not host or others:
            raise ValueError(
                "This is not a base URL: https://, a host and a path that ends with /v1"
            )
        if scheme == "http" and host not in _LOOPBACK:
            raise ValueError(
                f"The base URL is http://{host}, where anyone on the way could read the key: use https://"
            )
        if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
            raise ValueError(
                "The API key is empty, or has a character that no key has, such as a line break"
            )
        self._timeout_s = timeout_s
        self._attempts = attempts
        self._max_retry_after_s = max_retry_after_s
        self._http = httpx.Client(
            headers={
                "Authorization": f"Bearer {api_key}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",  # a compressed body could be any number of times larger than it looks
                "User-Agent": "animal-store-client/1.0.0",
            },
            timeout=timeout_s,
            trust_env=host not in _LOOPBACK,  # a proxy cannot reach this machine's own services
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def pets(self, *, status: PetStatus | None = None, page_size: int = 100) -> Iterator[Pet]:
        """Yield the animals in ascending id order, asking for a page when it is needed.

        Args:
            status: Only animals with this status.
            page_size: 1 to 100 animals per request.

        Raises:
            AnimalStoreError: A page cannot be had.
        """
        query = {"limit": page_size, "status": status} if status else {"limit": page_size}
        url: httpx.URL | None = self._pets.copy_merge_params(query)
        last_id = 0
        while url:
            response, body = self._request("GET", url)
            page = [Pet.from_json(value) for value in body] if isinstance(body, list) else []
            ids = [last_id, *(pet.id for pet in page)]
            url = self._next(response)
            # Without this, a broken service could keep a caller in the list for ever.
            if ids != sorted(set(ids)) or (url and not page) or not isinstance(body, list):
                raise InvalidResponseError(
                    f"The page after animal {last_id} is not a page, or does not advance"
                )
            yield from page
            last_id = ids[-1]

    def create(
        self,
        name: str,
        category_id: int,
        status: PetStatus | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Pet:
        """Add an animal. Retries never add it twice.

        Args:
            name: 1 to 256 characters, at least one of them not white space.
            category_id: A 64-bit integer.
            status: None for an animal without one.
            idempotency_key: Give one to repeat the call itself, in another process for instance, within 24 hours.

        Raises:
            AnimalStoreError: The animal is refused, or the service does not answer.
        """
        body = {"name": name, "categoryId": category_id} | ({"status": status} if status else {})
        headers = {
            "Idempotency-Key": str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        }
        response, value = self._request("POST", self._pets, headers=headers, json=body)
        return Pet.from_json(value, replayed="Idempotency-Replayed" in response.headers)

    @deprecated("GET /pets/{petId} will be removed on 5 December 2030: use pets()")
    def get(self, pet_id: int) -> Pet:
        """Return one animal.

        Raises:
            NotFoundError: There is no such animal.
            AnimalStoreError: The service does not answer.
        """
        return Pet.from_json(
            self._request("GET", self._pets.copy_with(path=f"{self._pets.path}/{pet_id}"))[1]
        )

    def _next(self, response: httpx.Response) -> httpx.URL | None:
        """Return the URL of the next page; never one that would take the key to another origin."""
        link = response.links.get("next", {}).get("url")
        if link is None:
            return None
        try:
            url = response.url.join(link)
        except httpx.InvalidURL as error:
            raise InvalidResponseError(
                f"The link to the next page is not a URL: {link[:200]}"
            ) from error
        if (url.scheme, url.netloc, url.userinfo) != (self._pets.scheme, self._pets.netloc, b""):
            raise InvalidResponseError(
                f"The next page is said to be at {link[:200]}, which is another origin"
            )
        return url

    def _request(self, method: str, url: httpx.URL, **options: Any) -> tuple[httpx.Response, Any]:
        """Send a request until there is a response or no hope; return the response and its JSON."""
        for attempt in stamina.retry_context(
            self._backoff,
            attempts=self._attempts,
            timeout=None,
            wait_initial=0.2,
            wait_max=10,
            wait_jitter=1,
        ):
            with attempt:
                response, body = self._attempt(method, url, **options)
        try:
            return response, json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InvalidResponseError(
                f"{url}: something else than JSON of up to {_MAX_BODY_BYTES} bytes"
            ) from error

    def _backoff(self, error: Exception) -> bool | float:
        """Decide whether to try again: False, True for exponential backoff, or after so many seconds."""
        if not isinstance(error, ApiError):
            return isinstance(error, NoResponseError)
        if not error.may_pass or error.retry_after_s is None:
            return error.may_pass
        # Jitter, because the other clients were told the same.
        jitter = random.random()  # noqa: S311
        return error.retry_after_s <= self._max_retry_after_s and error.retry_after_s + jitter

    def _attempt(self, method: str, url: httpx.URL, **options: Any) -> tuple[httpx.Response, bytes]:
        """Send a request once, and read the body as it was sent: compressed, which nobody asked for, it is not JSON."""
        deadline, content = time.monotonic() + self._timeout_s, bytearray()
        try:
            with self._http.stream(method, url, **options) as response:
                for chunk in response.iter_raw():
                    content += chunk
                    if time.monotonic() > deadline:
                        raise httpx.ReadTimeout("the body takes too long")
                    if len(content) > _MAX_BODY_BYTES:
                        content.clear()
                        break
        except httpx.LocalProtocolError as error:
            raise ValueError(str(error)) from error
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            raise NoResponseError(f"{method} {url} got no response: {reason}") from error
        if not response.is_success:
            raise CLASSES.get(response.status_code, ApiError)(response, bytes(content))
        return response, bytes(content)
