"""The service as one ASGI application: the API as API Gateway would answer, and pages about it."""

import asyncio
import logging
import re
import socket
import string
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import h11
import uvicorn
import yaml
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
from uvicorn.protocols.http.h11_impl import H11Protocol

from tools import ROOT
from tools.local.gateway import Gateway
from tools.local.output import Output

_KEY = re.compile(r"(animal_(?:live|test)_)[0-9A-Za-z]+")
_SWAGGER_UI = ("aws_lambda_powertools", "event_handler/openapi/swagger_ui")
# Another site may not show a page in a frame, where clicks could be led astray.
_UNFRAMED = {"Content-Security-Policy": "frame-ancestors 'none'"}
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
        state = (self.conn.their_state, self.cycle)
        if state == before and self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self.transport.abort()
        elif not self.transport.is_closing():
            self.loop.call_later(self.timeout_keep_alive, self._end_if_stuck, state)


def serve(application: Starlette, listener: socket.socket) -> None:
    """Answer HTTP requests until the process is told to stop."""
    logging.getLogger("uvicorn.access").addFilter(_hide_keys)
    config = uvicorn.Config(
        application,
        http=Connection,
        # Beyond this size, which exceeds the gateway's own limit, uvicorn answers in plain text.
        h11_max_incomplete_event_size=64 * 1024,
        log_config=None,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        # So often does asyncio try to accept a connection when there are no descriptors left.
        backlog=64,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[listener])


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

    async def _api(self, request: Request) -> Response:
        return await self.gateway.handle(request)

    async def _openapi(self, request: Request) -> Response:
        """Read the document again, as it may have changed, with this server as its only one."""
        url = f"http://{request.headers['host']}/v1"
        try:
            document = yaml.safe_load(self._document.read_text("utf-8"))
            document["servers"] = [{"url": url}]
        except Exception as error:  # someone may be editing it
            why = f"{self._document} cannot be used: {error}"
            _log.warning(why)
            return PlainTextResponse(why, 500)
        text = yaml.safe_dump(document, sort_keys=False)
        return Response(text, media_type="application/yaml")


def _page(name: str) -> Response:
    content = Path(__file__).with_name(f"{name}.html").read_bytes()
    return HTMLResponse(content, headers=_UNFRAMED)


def _hide_keys(record: logging.LogRecord) -> bool:
    """Write a request's target for the terminal: printable, not too long, and without a key."""
    arguments: Any = record.args
    client, method, target, *others = arguments
    target = target[:1000]  # repeated decoding is quadratic in its length
    while (decoded := unquote(target)) != target:
        target = decoded
    target = quote(_KEY.sub(r"\1...", target), safe=string.punctuation)[:200]
    record.args = (client, method, target, *others)
    return True
