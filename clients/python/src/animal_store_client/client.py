"""The client for threads."""

import os
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple, Self

import httpx2
from typing_extensions import deprecated

from animal_store_client.core import MAX_BODY_BYTES, MAX_CREATION_S, SEND, Call, Core, T, log
from animal_store_client.errors import AnimalStoreError
from animal_store_client.pet import AnyStatus, Page, Pet


class Pool(NamedTuple):
    """A process's connections, and the semaphores that limit how many calls run at once."""

    http: httpx2.Client
    reads: threading.Semaphore
    writes: threading.Semaphore


class TimeLimit(float):
    """The seconds that an attempt may take, and the moment at which they are over."""

    def __init__(self, _: float) -> None:
        self.end = time.monotonic() + self


def share_time_limit(_: str, info: Any) -> None:
    """Let all reads of an attempt share a TimeLimit; httpx2 would restart it for each read.

    httpx2 calls this function (a request's "trace" extension) at each step of a request. If a
    step returns a new connection, this function replaces its `read`.
    """
    connection = info.get("return_value")
    if hasattr(connection, "read"):
        read = connection.read

        def read_in_time(max_bytes: int, timeout: Any = None) -> Any:
            if isinstance(timeout, TimeLimit):
                timeout = timeout.end - time.monotonic()
                if timeout <= 0:
                    raise httpx2.ReadTimeout("it took too long")
            return read(max_bytes, timeout)

        connection.read = read_in_time


class Client(Core[httpx2.Client]):
    """Calls the API. Threads and forked processes may share one client.

    Use it in a `with` statement, or call `close` when you're done.
    """

    _http_class = httpx2.Client
    _pools: dict[int, Pool]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this process's connections.

        A client from `with_options`, or with your own `http_client`, leaves them open.
        """
        if self._may_close:
            self._pool().http.close()

    def pages(
        self, *, status: AnyStatus = None, page_size: int = 100, cursor: str | None = None
    ) -> Generator[Page]:
        """Yield the list page by page.

        Args:
            status: The status of the animals to list; None for all animals.
            page_size: The maximum number of animals in a page, 1 to 100.
            cursor: The `cursor` of a `Page` or of an error, to resume the list there; None for the
                start of the list. Pass the same `status` as in the earlier call.
        """
        while True:
            page = self._send(self._page(status, page_size, cursor))
            yield page
            cursor = page.cursor
            if cursor is None:
                return

    def pets(
        self, *, status: AnyStatus = None, page_size: int = 100, cursor: str | None = None
    ) -> Generator[Pet]:
        """Yield the animals in ascending id order, with the arguments of `pages`."""
        for page in self.pages(status=status, page_size=page_size, cursor=cursor):
            yield from page.pets

    def follow_pets(self) -> Generator[Pet]:
        """Yield each animal in the list once, then each new animal as it appears.

        It waits 30 seconds between two readings of the list, and logs temporary errors; any other
        error ends it. It keeps the ids of yielded animals only in memory: after a restart, you get
        all animals again.
        """
        # An animal may appear up to 30 seconds after one with a higher id, on a page already read.
        # So round 3 starts at the last page of round 1, round 4 at that of round 2, and so on.
        start = next_start = None
        known: set[int] = set()
        while True:
            last_cursor = start
            try:
                for page in self.pages(cursor=start):
                    for pet in page.pets:
                        if pet.id not in known:
                            known.add(pet.id)
                            yield pet
                    last_cursor = page.cursor or last_cursor
                start, next_start = next_start, last_cursor
            except AnimalStoreError as error:
                if not error.is_temporary:
                    raise
                log.warning("%s; reading again in %.0f s", error, MAX_CREATION_S)
            time.sleep(MAX_CREATION_S)

    def create(
        self,
        name: str,
        category_id: int,
        status: AnyStatus = None,
        *,
        idempotency_key: str | None = None,
    ) -> Pet:
        """Add an animal; retries never add the animal twice.

        An interrupted call (Ctrl-C, a cancelled task) may have added the animal, and no error tells
        you its idempotency key. If you want to repeat such a call safely, pass a key of your own.

        Args:
            name: 1 to 256 characters, at least one of them not white space.
            category_id: The number of the animal's category, a 64-bit integer.
            status: The animal's availability; None for an animal without a status.
            idempotency_key: A text that identifies this creation for 24 hours: 1 to 255 visible
                ASCII characters, no quote at either end; by default, a UUID. To repeat a failed
                call, pass the `idempotency_key` of its error.
        """
        return self._send(self._create(name, category_id, status, idempotency_key))

    @deprecated("GET /pets/{petId} will be removed on 5 December 2030: use pets()")
    def get(self, pet_id: int) -> Pet:
        """Return the animal with this id; raise NotFoundError if no animal has the id."""
        return self._send(self._get(pet_id))

    def _send(self, call: Call[T]) -> T:
        pool = self._pool()
        with self._slot(call, pool):
            call.start()
            while True:
                try:
                    return call.read_result(*self._send_once(call, pool.http))
                except AnimalStoreError as error:
                    pause_s = call.prepare_retry(error)
                time.sleep(pause_s)

    @contextmanager
    def _slot(self, call: Call[Any], pool: Pool) -> Iterator[None]:
        slots = pool.reads if call.method == "GET" else pool.writes
        if not slots.acquire(timeout=self._limits["max_wait_s"]):
            raise call.no_slot_error()
        try:
            yield
        finally:
            slots.release()

    def _send_once(self, call: Call[Any], http: httpx2.Client) -> tuple[httpx2.Response, bytes]:
        """Send the request once; return the response and its body.

        Reading stops when the body exceeds MAX_BODY_BYTES.
        """
        content = bytearray()
        request = call.build_request(http, TimeLimit(call.next_timeout_s()))
        request.extensions["trace"] = share_time_limit
        with call.translate_failures(), closing(http.send(request, **SEND)) as response:
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > MAX_BODY_BYTES:
                    break
        return response, bytes(content)

    def _pool(self) -> Pool:
        """Return this process's pool: a forked process must not use its parent's connections."""
        pid = os.getpid()
        if pid not in self._pools:
            reads, writes = (threading.Semaphore(self._max_in_flight) for _ in range(2))
            # If several threads make a pool at once, all of them get the pool of the first.
            self._pools.setdefault(pid, Pool(self._http_client or self._new_http(), reads, writes))
        return self._pools[pid]
