"""The client for threads: sends the calls of the core, and waits."""

import math
import socket
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, Self

import httpx2
from typing_extensions import deprecated

from animal_store_client.core import MAX_BODY_BYTES, Call, Core, T
from animal_store_client.errors import AnimalStoreError
from animal_store_client.pet import AnyStatus, Page, Pet

_attempt_end = ContextVar("_attempt_end", default=math.inf)


class Client(Core[httpx2.Client]):
    """Calls the API as `Core` says. Threads may share it; it survives forks. Use it in `with`."""

    _connect = httpx2.Client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if not self._given:
            self._connections().close()

    def pages(
        self, *, status: AnyStatus = None, page_size: int = 100, cursor: str | None = None
    ) -> Iterator[Page]:
        """Yield the list page by page.

        Args:
            status: Only animals with this status.
            page_size: At most this many animals in a page, 1 to 100.
            cursor: The last page's, to resume with the same status after the next one failed.
        """
        for call in self._pages(status, page_size, cursor):
            yield self._send(call)

    def pets(self, *, status: AnyStatus = None, page_size: int = 100) -> Iterator[Pet]:
        """Yield the animals in ascending id order; arguments and errors are those of `pages`."""
        for page in self.pages(status=status, page_size=page_size):
            yield from page.pets

    def create(
        self,
        name: str,
        category_id: int,
        status: AnyStatus = None,
        *,
        idempotency_key: str | None = None,
    ) -> Pet:
        """Add an animal. Retries never add it twice.

        Args:
            name: 1 to 256 characters, at least one of them not white space.
            category_id: A 64-bit integer.
            status: None for an animal without one.
            idempotency_key: That of a failed call, to repeat it; a key is kept for 24 hours.
        """
        return self._send(self._create(name, category_id, status, idempotency_key))

    @deprecated("GET /pets/{petId} will be removed on 5 December 2030: use pets()")
    def get(self, pet_id: int) -> Pet:
        """Return one animal; raise NotFoundError if there is none."""
        return self._send(self._get(pet_id))

    def _send(self, call: Call[T]) -> T:
        while True:
            try:
                return call.result(*self._attempt(call))
            except AnimalStoreError as error:
                pause_s = call.pause_s(error)
            time.sleep(pause_s)

    def _attempt(self, call: Call[Any]) -> tuple[httpx2.Response, bytes]:
        """Send a request once; return the response and as much of its body as the core takes."""
        http, timeout_s, content = self._connections(), call.attempt_s(), b""
        token = _attempt_end.set(time.monotonic() + timeout_s)
        options: Any = {"timeout": timeout_s, "extensions": {"trace": _end_with_attempt}}
        try:
            with call.translate_failures(), http.stream(**call.request(), **options) as response:
                if "Content-Encoding" not in response.headers:
                    for chunk in response.iter_bytes():
                        content += chunk
                        if len(content) > MAX_BODY_BYTES:
                            break
            return response, content
        finally:
            _attempt_end.reset(token)


def _left_s(timeout_s: float | None = None) -> float:
    """Return how long this thread's attempt may still take."""
    left_s = _attempt_end.get() - time.monotonic()
    if left_s <= 0:
        raise httpx2.ReadTimeout("it took too long")
    return left_s if timeout_s is None else min(left_s, timeout_s)


def _end_with_attempt(event: str, info: dict[str, Any]) -> None:
    """Let no step of a connection outlast its attempt: httpcore's extension "trace" calls this."""
    # httpx2 limits each read, but not their number: header lines may trickle in, and 100 Continue
    # may repeat. It limits each connection to one of a host's addresses, but not their sum.
    if event.endswith("connect_tcp.started"):
        addresses = socket.getaddrinfo(info["host"], info["port"], type=socket.SOCK_STREAM)
        info["timeout"] = _left_s() / len(addresses)
    elif event.endswith("start_tls.started"):
        info["timeout"] = _left_s()
    elif event.endswith(("connect_tcp.complete", "start_tls.complete")):
        stream = info["return_value"]
        read = stream.read
        stream.read = lambda size, timeout=None: read(size, _left_s(timeout))
