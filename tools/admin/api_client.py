"""A client of the API for commands: finds the service that is meant, repeats what may be repeated, follows pages."""

import asyncio
import json
import os
import random
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import aiohttp

from tools.local.folder import DataFolder

Pet = dict[str, Any]

_ATTEMPTS = 6
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.2, 10.0
_TIMEOUT_S = 35.0  # API Gateway gives up after 29
_TOO_MANY_REQUESTS, _SERVER_ERROR, _CLIENT_ERROR = 429, 500, 400
# RFC 8288, as far as a service with one `next` link needs it.
_NEXT = re.compile(r'<([^>]*)>\s*;\s*rel="?next"?')


class ApiError(Exception):
    """The service refuses, or does not answer however often it is asked; the message is for the person who asked."""


@dataclass(frozen=True, slots=True)
class Target:
    """The service that is meant.

    Args:
        base_url: Ends in `/v1`.
        api_key: A valid key, never shown.
    """

    base_url: str
    api_key: str


def find_target(base_url: str | None, api_key_file: Path | None) -> Target:
    """Find the service that is meant: the one that is named, else the one that `make run` serves from DATA.

    Args:
        base_url: Given by the user.
        api_key_file: Holds the key; without it, `API_KEY` of the environment does.

    Raises:
        ApiError: No service, or no key for it, is to be found.
    """
    api_key = api_key_file.read_text("utf-8").strip() if api_key_file else os.environ.get("API_KEY", "")
    if base_url is None:
        folder = DataFolder.from_environment()
        service = folder.running()
        if service is None:
            raise ApiError(f"No `make run` is using {folder.path}. Start it, or name a service: --base-url URL")
        return Target(service.base_url, api_key or folder.api_key.read_text("utf-8").strip())
    if urlsplit(base_url).scheme not in {"http", "https"}:
        raise ApiError(f"{base_url} is no base URL: it begins with https:// and ends with /v1")
    if not api_key:
        raise ApiError("No API key: give --api-key-file FILE, or put it into the environment as API_KEY")
    return Target(base_url.rstrip("/"), api_key)


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer.

    Args:
        status: The HTTP status.
        headers: Case-insensitive.
        body: As parsed from JSON; integers are exact.
        seconds: What the attempt that succeeded took.
    """

    status: int
    headers: Mapping[str, str]
    body: Any
    seconds: float


class ApiClient:
    """Sends requests with the target's key.

    Args:
        target: The service.
        session: For the connections.
    """

    def __init__(self, target: Target, session: aiohttp.ClientSession) -> None:
        self._target = target
        self._session = session
        self.repetitions = 0

    async def create(self, pet: Pet, idempotency_key: str) -> Answer:
        """Add an animal; the key makes it safe to repeat.

        Raises:
            ApiError: The service refuses, or cannot answer.
        """
        headers = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key}
        return await self._request("POST", f"{self._target.base_url}/pets", headers, json.dumps(pet).encode())

    async def pages(self, **parameters: str | int | None) -> AsyncIterator[list[Pet]]:
        """Follow a list from its first page to its end.

        Args:
            parameters: Of listPets; None leaves one out.

        Raises:
            ApiError: The service refuses, or cannot answer.
        """
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        url: str | None = f"{self._target.base_url}/pets?{query}"
        while url:
            answer = await self._request("GET", url, {})
            yield answer.body
            following = _NEXT.search(answer.headers.get("Link", ""))
            url = self._same_origin(urljoin(url, following[1])) if following else None

    def _same_origin(self, url: str) -> str:
        """Refuse to carry the key elsewhere."""
        if urlsplit(url)[:2] != urlsplit(self._target.base_url)[:2]:
            raise ApiError(f"The next page is said to be at {url}, which is not the service that was asked")
        return url

    async def _request(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        """Send a request that may be repeated until there is an answer, or no hope."""
        failure = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                self.repetitions += 1
            try:
                answer, failure, wait_s = await self._attempt(method, url, headers, body)
            except (aiohttp.ClientError, TimeoutError) as error:
                answer, failure, wait_s = None, f"{type(error).__name__} {error}".strip(), 0.0
            if answer:
                return answer
            # Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
            longest = min(_FIRST_DELAY_S * 2**attempt, _LONGEST_DELAY_S)
            if attempt < _ATTEMPTS - 1:
                await asyncio.sleep(wait_s + random.uniform(0, longest))  # noqa: S311 - spreads load, hides nothing
        raise ApiError(f"{method} {url} failed {_ATTEMPTS} times, at last with: {failure}")

    async def _attempt(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[Answer | None, str, float]:
        """Send a request once.

        Returns:
            The answer; or None, why, and how many seconds to wait at least.

        Raises:
            ApiError: The service refuses.
        """
        begin = time.monotonic()
        authorization = {"Authorization": f"Bearer {self._target.api_key}"}
        async with self._session.request(
            method, url, headers={**headers, **authorization}, data=body, allow_redirects=False
        ) as response:
            text = await response.text("utf-8")
            seconds = time.monotonic() - begin
            if response.status == _TOO_MANY_REQUESTS or response.status >= _SERVER_ERROR:
                retry_after = response.headers.get("Retry-After", "")
                return None, f"{response.status} {text}", float(retry_after) if retry_after.isdigit() else 0.0
            if response.status >= _CLIENT_ERROR:
                raise ApiError(f"{method} {url} is refused: {response.status} {text}")
            return Answer(response.status, response.headers, _json(text, url), seconds), "", 0.0


def _json(text: str, url: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ApiError(f"{url} does not answer as the API does; is that its base URL?") from error


@asynccontextmanager
async def connect(target: Target, connections: int = 1) -> AsyncIterator[ApiClient]:
    """Open a client.

    Args:
        target: The service.
        connections: The most to use at a time.
    """
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections),
        timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S),
        trust_env=urlsplit(target.base_url).hostname not in {"127.0.0.1", "localhost"},  # a proxy, for what is far
    ) as session:
        yield ApiClient(target, session)
