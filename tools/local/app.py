"""The service as one ASGI application: the API as API Gateway would answer, and pages about it."""

import asyncio
import json
import logging
import re
import time
from http import HTTPStatus
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

import h11
import uvicorn
import yaml
from lambda_local.gateway import Gateway
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from tools import ROOT
from tools.local import docs
from tools.local.output import STATUS_PAGE, Metrics
from tools.local.service import base_path

_KEY = re.compile(r"(animal_(?:live|test)_)[0-9A-Za-z]+")
_HOSTS = {"127.0.0.1", "localhost"}
_RECEIVE_SECONDS = 10
_MEDIA_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".yaml": "application/yaml",
}
_NOTE = (
    "Press <b>Authorize</b> and paste the API key that <code>make run</code> printed, then open an "
    "operation and press <b>Execute</b>. "
    'What the service has done since: <a href="/status">status</a>.'
)
_log = logging.getLogger(__name__)


class Connection(H11Protocol):
    """uvicorn's HTTP connection; a client that does not complete a request in time is disconnected.

    uvicorn itself limits only the time between one response and the first byte of the next request.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to look at a new connection every `_RECEIVE_SECONDS`."""
        super().connection_made(transport)
        self._end_if_stuck(None)

    def _end_if_stuck(self, before: Any) -> None:
        """End it if it is receiving the same request as the last time."""
        if self.transport.is_closing():
            return
        state = (self.conn.their_state, self.cycle)
        if state == before and self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self.transport.abort()
        else:
            self.loop.call_later(_RECEIVE_SECONDS, self._end_if_stuck, state)


def server(application: ASGIApp) -> uvicorn.Server:
    """Make the HTTP server of an application."""
    # Beyond that size, larger than what the gateway refuses, uvicorn answers in plain text.
    options: Any = {"http": Connection, "h11_max_incomplete_event_size": 64 * 1024}
    options |= {
        "log_config": None,
        "proxy_headers": False,
        "ws": "none",
        "lifespan": "off",
    }
    return uvicorn.Server(
        uvicorn.Config(application, timeout_graceful_shutdown=1, **options)
    )


class Application:
    """The ASGI application; its gateway may be exchanged for another at any time."""

    def __init__(self, gateway: Gateway, metrics: Metrics) -> None:
        self.gateway, self._metrics = gateway, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log it."""
        begin, request = time.monotonic(), Request(scope, receive)
        host = request.headers.get("host", "").lower().partition(":")[0]
        # A page of another site may have a name that leads here (DNS rebinding).
        if host not in _HOSTS:
            response = Response("Invalid host header", 400)
        else:
            page = self._page(request) if request.method in {"GET", "HEAD"} else None
            response = page or await self.gateway.handle(request)
        await response(scope, receive, send)
        target = b"?".join(filter(None, (scope["raw_path"], scope["query_string"])))
        is_refused = response.status_code == HTTPStatus.UNAUTHORIZED
        _log.info(
            "%s  %s  %s %s  %.0f ms%s",
            time.strftime("%H:%M:%S"),
            response.status_code,
            request.method,
            _shown(target.decode("latin-1")),
            (time.monotonic() - begin) * 1000,
            "  (needs: Authorization: Bearer API_KEY)" if is_refused else "",
        )

    def _page(self, request: Request) -> Response | None:
        """Make one of the pages about the service; None for any other path."""
        contents: dict[str, Any] = {
            "/docs": lambda: docs.page("/docs", _NOTE, {"url": "/openapi.yaml"}),
            "/docs/swagger-ui.js": lambda: docs.swagger_ui()["swagger-ui.js"],
            "/docs/swagger-ui.css": lambda: docs.swagger_ui()["swagger-ui.css"],
            "/openapi.yaml": lambda: yaml.safe_dump(
                self._openapi(request), sort_keys=False
            ),
            "/status": STATUS_PAGE.read_bytes,
            "/status.json": lambda: json.dumps(
                self._metrics.summary(self._base_url(request))
            ),
        }
        path = request.scope["path"]
        if path == "/":
            return RedirectResponse("/docs")
        if path not in contents:
            return None
        media_type = _MEDIA_TYPES.get(PurePath(path).suffix, "text/html")
        return Response(
            contents[path](),
            headers={"Cache-Control": "no-store"},
            media_type=media_type,
        )

    def _base_url(self, request: Request) -> str:
        return f"http://{request.headers['host']}{base_path(self.gateway.template)}"

    def _openapi(self, request: Request) -> Any:
        """Read the document again, as it may have changed, with this server as its only one."""
        document = yaml.safe_load((ROOT / "openapi.yaml").read_text("utf-8"))
        document["servers"] = [
            {"url": self._base_url(request), "description": "this machine"}
        ]
        return document


def _shown(target: str) -> str:
    """Write a request target for the terminal: on one line, not too long, and without a key."""
    target = target[:1000]  # decoding it again and again takes the square of its length
    while (decoded := unquote(target)) != target:
        target = decoded
    shown = _KEY.sub(r"\1...", target)[:200]
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)
