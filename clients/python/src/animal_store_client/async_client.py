"""The client for asyncio: sends the calls of the core, and waits, as `Client` does."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Self

import httpx2
from typing_extensions import deprecated

from animal_store_client.core import MAX_BODY_BYTES, Call, Core, T
from animal_store_client.errors import AnimalStoreError
from animal_store_client.pet import AnyStatus, Page, Pet


class AsyncClient(Core[httpx2.AsyncClient]):
    """Calls the API from asyncio as `Client` does; a call that is cancelled sends nothing more."""

    _connect = httpx2.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if not self._given:
            await self._connections(asyncio.get_running_loop()).aclose()

    async def pages(
        self, *, status: AnyStatus = None, page_size: int = 100, cursor: str | None = None
    ) -> AsyncIterator[Page]:
        """Yield the list page by page."""
        for call in self._pages(status, page_size, cursor):
            yield await self._send(call)

    async def pets(self, *, status: AnyStatus = None, page_size: int = 100) -> AsyncIterator[Pet]:
        """Yield the animals in ascending id order."""
        async for page in self.pages(status=status, page_size=page_size):
            for pet in page.pets:
                yield pet

    async def create(
        self,
        name: str,
        category_id: int,
        status: AnyStatus = None,
        *,
        idempotency_key: str | None = None,
    ) -> Pet:
        """Add an animal. Retries never add it twice."""
        return await self._send(self._create(name, category_id, status, idempotency_key))

    @deprecated("GET /pets/{petId} will be removed on 5 December 2030: use pets()")
    async def get(self, pet_id: int) -> Pet:
        """Return one animal."""
        return await self._send(self._get(pet_id))

    async def _send(self, call: Call[T]) -> T:
        while True:
            try:
                return call.result(*await self._attempt(call))
            except AnimalStoreError as error:
                pause_s = call.pause_s(error)
            await asyncio.sleep(pause_s)

    async def _attempt(self, call: Call[Any]) -> tuple[httpx2.Response, bytes]:
        """Send a request once; return the response and as much of its body as the core takes."""
        http, timeout_s = self._connections(asyncio.get_running_loop()), call.attempt_s()
        content = b""
        request = http.stream(**call.request(), timeout=timeout_s)
        with call.translate_failures():
            async with asyncio.timeout(timeout_s), request as response:
                if "Content-Encoding" not in response.headers:
                    async for chunk in response.aiter_bytes():
                        content += chunk
                        if len(content) > MAX_BODY_BYTES:
                            break
        return response, content
