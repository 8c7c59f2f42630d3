"""An HTTP/1.1 server on loopback for the clients that are measured; it can hang up on all of them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple


class Response(NamedTuple):
    """What is answered to a request."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


Respond = Callable[[str, Mapping[str, str], bytes], Awaitable[Response]]
"""Answers a request: its path, its headers by their names in lower case, and its body."""


class Server:
    """One server. It reads what the SDK and Lambda's runtime client send: a body has a length, never chunks."""

    def __init__(self, respond: Respond, tls: ssl.SSLContext | None = None) -> None:
        self._respond, self._tls = respond, tls
        self._connections: dict[asyncio.Task[Any] | None, asyncio.StreamWriter] = {}

    @asynccontextmanager
    async def run(self) -> AsyncIterator[str]:
        """Serve on a free port for as long as the context lasts; its value is `host:port`."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        try:
            yield "{}:{}".format(*server.sockets[0].getsockname())
        finally:
            server.close()
            await self.hang_up()

    async def hang_up(self) -> None:
        """Close every connection from this side, as DynamoDB does with one that has been idle for a while."""
        tasks = [task for task in self._connections if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._connections[task] = writer
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):  # the client has hung up
                while True:
                    line, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                    headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
                    body = await reader.readexactly(int(headers.get("content-length", 0)))
                    status, body, more = await self._respond(line.split()[1], headers, body)
                    head = {"Content-Type": "application/json", "Content-Length": len(body), **more}
                    lines = [f"HTTP/1.1 {status} Answer", *(f"{name}: {value}" for name, value in head.items())]
                    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        finally:
            writer.transport.abort()
            del self._connections[task]
