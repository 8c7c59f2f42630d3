"""The client for threads: sends the calls of the core, and waits."""

import math
import os
import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Self

import httpx2
from typing_extensions import deprecated

from animal_store_client.core import MAX_BODY_BYTES, SEND, Call, Core, T, is_uncompressed
from animal_store_client.errors import AnimalStoreError
from animal_store_client.pet import AnyStatus, Page, Pet

_attempt_end = ContextVar("_attempt_end", default=math.inf)


class Pool(NamedTuple):
    """A process's connections, and the turns of its calls."""

    http: httpx2.Client
    reads: threading.Semaphore
    writes: threading.Semaphore


class Client(Core[httpx2.Client]):
    """Calls the API. Threads may share it, and it survives forks. Use it in `with`."""

    _connect = httpx2.Client
    _pools: dict[int, Pool]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this process's connections, unless they are an `http_client` of yours."""
        if self._may_close:
            self._pool().http.close()

    def pages(
        self, *, status: AnyStatus = None, page_size: int = 100, cursor: str | None = None
    ) -> Generator[Page]:
        """Yield the list page by page.

        Args:
            status: Only animals with this status.
            page_size: At most this many animals in a page, 1 to 100.
            cursor: A page's or an error's, to go on there with the same status.
        """
        for call in self._pages(status, page_size, cursor):
            yield self._send(call)

    def pets(
        self, *, status: AnyStatus = None, page_size: int = 100, cursor: str | None = None
    ) -> Generator[Pet]:
        """Yield the animals in ascending id order; arguments and errors are those of `pages`."""
        for page in self.pages(status=status, page_size=page_size, cursor=cursor):
            yield from page.pets

    def create(
        self,
        name: str,
        category_id: int,
        status: AnyStatus = None,
        *,
        idempotency_key: str | None = None,
    ) -> Pet:
        """Add an animal. Retries do not add it twice, but an interrupted call may have added it.

        An interruption, of a thread or a task, raises no error that has the key: pass your own.

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
        pool = self._pool()
        with self._turn(call, pool):
            call.start()
            while True:
                try:
                    return call.result(*self._attempt(call, pool.http))
                except AnimalStoreError as error:
                    pause_s = call.pause_s(error)
                time.sleep(pause_s)

    @contextmanager
    def _turn(self, call: Call[Any], pool: Pool) -> Iterator[None]:
        turns = pool.reads if call.method == "GET" else pool.writes
        if not turns.acquire(timeout=self.limits.max_wait_s):
            raise call.without_turn()
        try:
            yield
        finally:
            turns.release()

    def _attempt(self, call: Call[Any], http: httpx2.Client) -> tuple[httpx2.Response, bytes]:
        """Send a request once; return the response and as much of its body as the core takes."""
        timeout_s, content = call.attempt_s(), bytearray()
        request = call.request(http, timeout_s)
        if not self._given:
            request.extensions["trace"] = _end_with_attempt
        token = _attempt_end.set(time.monotonic() + timeout_s)
        try:
            with call.translate_failures(), closing(http.send(request, **SEND)) as response:
                if is_uncompressed(response):
                    for chunk in response.iter_bytes():
                        _left_s()
                        content += chunk
                        if len(content) > MAX_BODY_BYTES:
                            break
            return response, bytes(content)
        finally:
            # A hook of the owner's client may be inside another client's attempt.
            _attempt_end.reset(token)

    def _pool(self) -> Pool:
        """Return this process's connections; a fork leaves its parent's alone."""
        pid = os.getpid()
        if pid not in self._pools:
            self._refuse_second_owner(pid)
            reads, writes = (threading.Semaphore(self._max_in_flight) for _ in range(2))
            # Of threads that come here at the same time, all use the first one's.
            self._pools.setdefault(pid, Pool(self._given or self._open(), reads, writes))
        return self._pools[pid]


def _left_s(timeout_s: float = math.inf) -> float:
    """Return how long this thread's attempt may still take, at most the given time."""
    left_s = _attempt_end.get() - time.monotonic()
    if left_s <= 0:
        raise httpx2.ReadTimeout("it took too long")
    return min(left_s, timeout_s)


def _end_with_attempt(event: str, info: dict[str, Any]) -> None:
    """Let no step of a connection outlast its attempt: httpcore2's extension "trace" calls this."""
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
        stream.read = lambda size, timeout=math.inf: read(size, _left_s(timeout))
