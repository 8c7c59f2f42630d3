"""The surroundings of a function, on loopback: Lambda's Runtime API, and DynamoDB as the SDK knows it.

Runtime API: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from benchmarks.table import Animals

_RUNTIME = "/2018-06-01/runtime"
_DEADLINE_SECONDS = 900  # the longest that Lambda allows, so that a slow simulator meets no deadline


class FunctionError(Exception):
    """The function, or its start, failed; the text is what it reported."""


@dataclass(frozen=True)
class Answer:
    """What a function answered.

    Args:
        body: The proxy response.
        seconds: From handing the event over to taking the answer.
        at: When the answer came, in seconds of `time.perf_counter()`.
    """

    body: bytes
    seconds: float
    at: float


class RuntimeApi:
    """Lambda's side of the Runtime API, for one execution environment."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[tuple[str, bytes] | None] = asyncio.Queue()
        self._answer: asyncio.Future[Answer] | None = None
        self._asked = asyncio.Event()
        self._handed_over = 0.0
        self._number = 0

    async def invoke(self, event: bytes) -> Answer:
        """Hand an event over as soon as the function asks for one, and wait for the answer.

        Raises:
            FunctionError: The function raised, or could not start.
        """
        self._answer = asyncio.get_running_loop().create_future()
        self._number += 1
        self._events.put_nowait((f"00000000-0000-4000-8000-{self._number:012d}", event))
        return await self._answer

    async def idle(self) -> None:
        """Wait until the function waits for its next event."""
        await self._asked.wait()

    def close(self) -> None:
        """Let go of a function that waits for its next event, after its end."""
        self._events.put_nowait(None)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request of the runtime client."""
        now = time.perf_counter()
        if request.path == f"{_RUNTIME}/invocation/next":
            return await self._next()
        body = await request.read()
        answer = self._answer
        if answer is None or answer.done():
            return web.Response(status=403)
        if request.path.endswith("/response"):
            self._asked.clear()
            answer.set_result(Answer(body, now - self._handed_over, now))
        else:  # .../error of an invocation or of the start
            answer.set_exception(FunctionError(body.decode()))
        return web.Response(status=202)

    async def _next(self) -> web.Response:
        self._asked.set()
        entry = await self._events.get()
        if entry is None:
            return web.Response(status=410)
        request_id, event = entry
        # X-Ray's default rule samples the first request of each second: the first here, not those that follow at once.
        trace = f"Root=1-67891233-abcdef012345678912345678;Parent=0123456789abcdef;Sampled={int(self._number == 1)}"
        headers = {
            "Lambda-Runtime-Aws-Request-Id": request_id,
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + _DEADLINE_SECONDS) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-central-1:123456789012:function:benchmark",
            "Lambda-Runtime-Trace-Id": trace,
            "Content-Type": "application/json",
        }
        self._handed_over = time.perf_counter()
        return web.Response(body=event, headers=headers)


class DynamoDb:
    """DynamoDB's HTTP interface in front of the tables in memory."""

    def __init__(self, tables: Animals) -> None:
        self.tables = tables

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request of the SDK, with the checksum that it verifies."""
        body = self.tables.answer(request.headers["X-Amz-Target"], await request.read())
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "x-amz-crc32": str(zlib.crc32(body)),
            "x-amzn-RequestId": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ABCDEF",
        }
        return web.Response(body=body, headers=headers)


Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serve(handler: Handler) -> AsyncIterator[str]:
    """Serve on a free port of loopback for as long as the context lasts; its value is `host:port`."""
    runner = web.ServerRunner(web.Server(handler, access_log=None))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, shutdown_timeout=0.1)
        await site.start()
        yield "{}:{}".format(*runner.addresses[0])
    finally:
        await runner.cleanup()
