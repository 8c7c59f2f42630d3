"""The client for asyncio."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple, Self

import httpx2
from typing_extensions import deprecated

from animal_store_client.core import MAX_BODY_BYTES, MAX_CREATION_S, SEND, Call, Core, T, log
from animal_store_client.errors import AnimalStoreError
from animal_store_client.pet import AnyStatus, Page, Pet


class Pool(NamedTuple):
    """An event loop's connections, and the semaphores that limit how many calls run at once."""

    http: httpx2.AsyncClient
    reads: asyncio.Semaphore
    writes: asyncio.Semaphore
    closer: AsyncGenerator[httpx2.AsyncClient]


class AsyncClient(Core[httpx2.AsyncClient]):
    """The asyncio version of `Client`. A cancelled call sends no further request.

    Each event loop gets its own connections; `asyncio.run` closes those of its loop when it ends.
    """

    _http_class = httpx2.AsyncClient
    _pools: dict[asyncio.AbstractEventLoop, Pool]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close this event loop's connections.

        A client from `with_options`, or with your own `http_client`, leaves them open.
        """
        pool = self._pools.get(asyncio.get_running_loop())
        if pool and self._may_close:
            await pool.closer.aclose()

    async def pages(
        self, *, status: AnyStatus = None, page_size: int = 100, cursor: str | None = None
    ) -> AsyncGenerator[Page]:
        """Yield the list page by page, with the arguments of `Client.pages`."""
        while True:
            page = await self._send(self._page(status, page_size, cursor))
            yield page
            cursor = page.cursor
            if cursor is None:
                return

    async def pets(
        self, *, status: AnyStatus = None, page_size: int = 100, cursor: str | None = None
    ) -> AsyncGenerator[Pet]:
        """Yield the animals in ascending id order."""
        async for page in self.pages(status=status, page_size=page_size, cursor=cursor):
            for pet in page.pets:
                yield pet

    async def follow_pets(self) -> AsyncGenerator[Pet]:
        """Yield all animals, then each new animal as it appears, like `Client.follow_pets`."""
        start = next_start = None
        known: set[int] = set()
        while True:
            last_cursor = start
            try:
                async for page in self.pages(cursor=start):
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
            await asyncio.sleep(MAX_CREATION_S)

    async def create(
        self,
        name: str,
        category_id: int,
        status: AnyStatus = None,
        *,
        idempotency_key: str | None = None,
    ) -> Pet:
        """Add an animal, like `Client.create`.

        If the task may be cancelled, pass an idempotency key: then you can safely call again.
        """
        return await self._send(self._create(name, category_id, status, idempotency_key))

    @deprecated("GET /pets/{petId} will be removed on 5 December 2030: use pets()")
    async def get(self, pet_id: int) -> Pet:
        """Return the animal with this id; raise NotFoundError if no animal has the id."""
        return await self._send(self._get(pet_id))

    async def _send(self, call: Call[T]) -> T:
        pool = await self._pool()
        async with self._slot(call, pool):
            call.start()
            while True:
                try:
                    return call.read_result(*await self._send_once(call, pool.http))
                except AnimalStoreError as error:
                    pause_s = call.prepare_retry(error)
                await asyncio.sleep(pause_s)

    @asynccontextmanager
    async def _slot(self, call: Call[Any], pool: Pool) -> AsyncGenerator[None]:
        # Let calls wait here, because httpx2's pool scans all waiting calls whenever one ends.
        slots = pool.reads if call.method == "GET" else pool.writes
        try:
            async with asyncio.timeout(self._limits["max_wait_s"]):
                await slots.acquire()
        except TimeoutError:
            raise call.no_slot_error() from None
        try:
            yield
        finally:
            slots.release()

    async def _send_once(
        self, call: Call[Any], http: httpx2.AsyncClient
    ) -> tuple[httpx2.Response, bytes]:
        """Send the request once; return the response and its body.

        Reading stops when the body exceeds MAX_BODY_BYTES.
        """
        timeout_s, content = call.next_timeout_s(), bytearray()
        request = call.build_request(http, timeout_s)
        with call.translate_failures():
            async with (
                asyncio.timeout(timeout_s),
                aclosing(await http.send(request, **SEND)) as response,
            ):
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > MAX_BODY_BYTES:
                        break
        return response, bytes(content)

    async def _pool(self) -> Pool:
        """Return this event loop's own pool: a loop cannot use another loop's connections."""
        event_loop = asyncio.get_running_loop()
        if event_loop not in self._pools:
            for closed in [loop for loop in self._pools if loop.is_closed()]:
                del self._pools[closed]
            closer = self._connections()
            reads, writes = (asyncio.Semaphore(self._max_in_flight) for _ in range(2))
            self._pools[event_loop] = Pool(await anext(closer), reads, writes, closer)
        return self._pools[event_loop]

    async def _connections(self) -> AsyncGenerator[httpx2.AsyncClient]:
        """Yield the httpx2 client.

        `close`, or the end of `asyncio.run`, closes this generator. Then the generator closes the
        httpx2 client, unless the caller passed it as `http_client`.
        """
        http = self._http_client or self._new_http()
        try:
            yield http
        finally:
            if not self._http_client:
                await http.aclose()
