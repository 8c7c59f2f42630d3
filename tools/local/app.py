"""The service as one ASGI application: the API as API Gateway would answer, and pages about it."""

import asyncio
import logging
import re
import string
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import h11
import uvicorn
import yaml
from lambda_local.gateway import Gateway
from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Mount, Route, request_response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tools import ROOT
from tools.local.output import Output

_KEY = re.compile(r"(animal_(?:live|test)_)[0-9A-Za-z]+")
_PAGES = Path(__file__).parent
_SWAGGER_UI = ("aws_lambda_powertools", "event_handler/openapi/swagger_ui")
# Another site may not show a page in a frame, where clicks could be led astray.
_UNFRAMED = {
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
}
_log = logging.getLogger(__name__)


class Connection(H11Protocol):
    """uvicorn's HTTP connection; a client that does not complete a request in time is disconnected.

    uvicorn itself limits only the time between one response and the first byte of the next request.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start checking a new connection."""
        super().connection_made(transport)
        self._end_if_stuck(None)

    def _end_if_stuck(self, before: Any) -> None:
        """End the connection if it is still receiving the same request as last time."""
        if self.transport.is_closing():
            return
        state = (self.conn.their_state, self.cycle)
        if state == before and self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self.transport.abort()
        else:
            self.loop.call_later(2 * self.timeout_keep_alive, self._end_if_stuck, state)


def server(application: ASGIApp, idle_s: int = 5) -> uvicorn.Server:
    """Make the HTTP server of an application, with its clients' seconds between requests."""
    config = uvicorn.Config(
        application,
        http=Connection,
        # Beyond this size, which exceeds the gateway's own limit, uvicorn answers in plain text.
        h11_max_incomplete_event_size=64 * 1024,
        timeout_keep_alive=idle_s,
        log_config=None,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        # So often does asyncio try to accept a connection when there are no descriptors left.
        backlog=64,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


class Application(Starlette):
    """The ASGI application; its gateway may be replaced at any time."""

    def __init__(
        self, gateway: Gateway, output: Output, document: Path = ROOT / "openapi.yaml"
    ) -> None:
        self.gateway, self._document = gateway, document
        routes = [
            Route("/", RedirectResponse("/docs"), methods=["GET"]),
            Route("/docs", _page("docs"), methods=["GET"]),
            Mount("/docs", StaticFiles(packages=[_SWAGGER_UI])),
            Route("/openapi.yaml", self._openapi),
            Route("/status", _page("status"), methods=["GET"]),
            Route("/status.json", lambda _: JSONResponse(output.summary())),
        ]
        # Another site's page may have a host name that leads here (DNS rebinding).
        hosts = ["127.0.0.1", "localhost"]
        super().__init__(routes=routes)
        self.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
        self.router.default = request_response(self._api)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log it."""
        begin, status = time.monotonic(), 0

        async def noting_status(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await super().__call__(scope, receive, noting_status)
        target = (scope["raw_path"] + b"?" + scope["query_string"]).decode("latin-1")
        shown = f"{status}  {scope['method']} {_shown(target.rstrip('?'))}"
        milliseconds = (time.monotonic() - begin) * 1000
        _log.info("%s  %s  %.0f ms", time.strftime("%H:%M:%S"), shown, milliseconds)

    async def _api(self, request: Request) -> Response:
        return await self.gateway.handle(request)

    async def _openapi(self, request: Request) -> Response:
        """Read the document again, as it may have changed, with this server as its only one."""
        url = f"http://{request.headers['host']}/v1"
        try:
            document = yaml.safe_load(self._document.read_text("utf-8"))
            document["servers"] = [{"url": url, "description": "this machine"}]
        except (OSError, TypeError, ValueError, yaml.YAMLError) as error:
            why = f"{self._document} cannot be used: {error}"
            _log.info("          %s", why)
            return PlainTextResponse(why, HTTPStatus.INTERNAL_SERVER_ERROR)
        text = yaml.safe_dump(document, sort_keys=False)
        return Response(text, media_type="application/yaml")


def _page(name: str) -> Response:
    content = (_PAGES / f"{name}.html").read_bytes()
    return HTMLResponse(content, headers=_UNFRAMED)


def _shown(target: str) -> str:
    """Write a request target for the terminal: printable, not too long, and without a key."""
    target = target[:1000]  # repeated decoding is quadratic in its length
    while (decoded := unquote(target)) != target:
        target = decoded
    return quote(_KEY.sub(r"\1...", target), safe=string.punctuation)[:200]
