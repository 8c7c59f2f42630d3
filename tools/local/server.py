"""The socket side of the local gateway: aiohttp's protocol, the pages beside the API, and one line for each request.

Whatever arrives gets an answer of the gateway or a closed connection: what the HTTP parser refuses is answered here.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import HttpVersion10, web
from aiohttp.web_protocol import RequestHandler

from tools.local.events import Answer, Request
from tools.local.gateway import MAX_BODY_BYTES, Gateway
from tools.local.pages import Page

_BODY_TIMEOUT_S = 30.0
_IDLE_TIMEOUT_S = 60.0  # also the longest that a request's head may take
_NO_BODY = frozenset({204, 304})

LogRequest = Callable[[str, str, int, float], None]
"""Takes method, target, status and seconds of a request that has been answered."""


class GatewayServer:
    """Serves a gateway, which may be exchanged for another at any time.

    Args:
        gateway: What answers.
        pages: What is answered beside the API.
        log_request: Gets each request that has been answered.
        body_timeout_s: How long the body of a request may take to arrive.
    """

    def __init__(
        self, gateway: Gateway, pages: Page, log_request: LogRequest, *, body_timeout_s: float = _BODY_TIMEOUT_S
    ) -> None:
        self.gateway = gateway
        self._pages = pages
        self._log_request = log_request
        self._body_timeout_s = body_timeout_s

    @asynccontextmanager
    async def listen(self, listener: socket.socket) -> AsyncIterator[None]:
        """Serve on a socket that is bound, until the context ends."""
        protocols = _Server(self)
        server = await asyncio.get_running_loop().create_server(protocols, sock=listener)
        try:
            yield
        finally:
            server.close()
            await protocols.shutdown(timeout=1.0)

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request that the HTTP parser accepted."""
        if request.version < HttpVersion10:  # HTTP/0.9 knows no status
            return self.refuse()
        begin = time.monotonic()
        path, query = _split(request.raw_path)
        answer = self._pages.answer(request.method, path, f"http://{request.headers.get('Host', '')}")
        if answer is None:
            answer = await self._answer(request, path, query)
        self._log_request(request.method, request.raw_path, answer.status, time.monotonic() - begin)
        return _response(answer, request.method)

    async def _answer(self, request: web.BaseRequest, path: str, query: str) -> Answer:
        body = await self._read(request)
        if body is None:
            return self.gateway.respond("REQUEST_TOO_LARGE", "-")
        peer, here = request.get_extra_info("peername"), request.get_extra_info("sockname")
        return await self.gateway.handle(
            Request(
                method=request.method,
                path=path,
                query=query,
                headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers],
                body=body,
                protocol=f"HTTP/{request.version.major}.{request.version.minor}",
                source_ip=peer[0] if peer else "127.0.0.1",
                port=here[1] if here else 0,
            )
        )

    async def _read(self, request: web.BaseRequest) -> bytes | None:
        """Read the body.

        Returns:
            None when it is larger than API Gateway takes.

        Raises:
            ConnectionError: It did not arrive in time, or not at all: there is nobody to answer.
        """
        if (request.content_length or 0) > MAX_BODY_BYTES:
            return None
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # so that aiohttp still takes the answer to be the first that it sends
        body = bytearray()
        try:
            async with asyncio.timeout(self._body_timeout_s):
                while chunk := await request.content.readany():
                    body += chunk
                    if len(body) > MAX_BODY_BYTES:
                        return None
        except TimeoutError as error:
            raise ConnectionError("the body did not arrive in time") from error
        return bytes(body)

    def refuse(self) -> web.Response:
        """Answer what is not HTTP, or is too long for a request line or a header."""
        self._log_request("?", "(malformed request)", 400, 0.0)
        response = _response(self.gateway.respond("BAD_REQUEST_PARAMETERS", "-"), "GET")
        response.force_close()
        return response


class _Server(web.Server):
    """Makes a protocol for each connection."""

    def __init__(self, server: GatewayServer) -> None:
        super().__init__(server.serve)
        self._server = server

    def __call__(self) -> RequestHandler:
        return _Protocol(self, self._server, self._loop)


class _Protocol(RequestHandler):
    """Answers as the gateway does where aiohttp would answer in words of its own."""

    __slots__ = ("_server",)

    def __init__(self, manager: _Server, server: GatewayServer, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            manager, loop=loop, keepalive_timeout=_IDLE_TIMEOUT_S, auto_decompress=False, access_log=_NO_LOG
        )
        self._server = server

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002 - the signature is aiohttp's
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        # A status of 500 is ours: nothing in `serve` raises for what a client sends, except when it is gone.
        if status >= 500:  # noqa: PLR2004
            raise ConnectionError(message) from exc
        return self._server.refuse()


_NO_LOG: Any = None


def _split(target: str) -> tuple[str, str]:
    """Take a request target apart: origin form, or absolute form (RFC 9112, section 3.2) without its authority."""
    scheme, separator, rest = target.partition("://")
    if separator and scheme.lower() in {"http", "https"}:
        slash = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
        target = rest[slash:]
        if not target.startswith("/"):
            target = "/" + target
    path, _, query = target.partition("?")
    return path, query


def _response(answer: Answer, method: str) -> web.Response:
    body = None if answer.status in _NO_BODY else answer.body
    response = web.Response(status=answer.status, body=body)
    response.headers.clear()
    for name, value in answer.headers:
        response.headers.add(name, value)
    if body is not None:
        response.headers.setdefault("Content-Type", "application/json")  # API Gateway's default
        if method == "HEAD":
            response.headers["Content-Length"] = str(len(body))
    response.headers["Server"] = "animal-store-local"
    return response
