"""The service as one ASGI application: the API as API Gateway would answer, and pages about it."""

import json
import logging
import re
import time
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import yaml
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from tools import ROOT
from tools.local import docs
from tools.local.gateway import Gateway
from tools.local.output import STATUS_PAGE, Metrics

_KEY = re.compile(r"(animal_(?:live|test)_)[0-9A-Za-z]+")
_NOTE = (
    "Press <b>Authorize</b> and paste the API key that <code>make run</code> printed, then open an operation and press "
    '<b>Execute</b>. What the service has done since: <a href="/status">status</a>.'
)
_log = logging.getLogger(__name__)


class Application:
    """The ASGI application; its gateway may be exchanged for another at any time."""

    def __init__(self, gateway: Gateway, metrics: Metrics) -> None:
        self.gateway = gateway
        self._pages: dict[str, Any] = {  # functions of the request
            "/": lambda _: RedirectResponse("/docs"),
            "/docs": lambda _: _page(
                docs.page("/docs", _NOTE, {"url": "/openapi.yaml"}), "text/html"
            ),
            "/docs/swagger-ui.js": lambda _: _page(
                docs.swagger_ui()["swagger-ui.js"], "text/javascript"
            ),
            "/docs/swagger-ui.css": lambda _: _page(
                docs.swagger_ui()["swagger-ui.css"], "text/css"
            ),
            "/openapi.yaml": lambda req: _page(
                yaml.safe_dump(self._openapi(req), sort_keys=False), "application/yaml"
            ),
            "/openapi.json": lambda req: _page(json.dumps(self._openapi(req)), "application/json"),
            "/status": lambda _: _page(STATUS_PAGE.read_bytes(), "text/html"),
            "/status.json": lambda req: _page(
                json.dumps(metrics.summary(self._base_url(req))), "application/json"
            ),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log it."""
        begin, request = time.monotonic(), Request(scope, receive)
        page = self._pages.get(scope["path"]) if request.method in {"GET", "HEAD"} else None
        # A page of another site that lets its name point to this machine (DNS rebinding) comes with that name.
        if request.headers.get("host", "").lower().partition(":")[0] not in {
            "127.0.0.1",
            "localhost",
        }:
            response = Response("Invalid host header", 400)
        else:
            response = page(request) if page else await self.gateway.handle(request)
        await response(scope, receive, send)
        target = b"?".join(filter(None, (scope["raw_path"], scope["query_string"]))).decode(
            "latin-1"
        )
        hint = (
            "  (needs: Authorization: Bearer API_KEY)"
            if response.status_code == HTTPStatus.UNAUTHORIZED
            else ""
        )
        line = f"{time.strftime('%H:%M:%S')}  {response.status_code}  {request.method} {_shown(target)}"
        _log.info("%s  %.0f ms%s", line, (time.monotonic() - begin) * 1000, hint)

    def _base_url(self, request: Request) -> str:
        return f"http://{request.headers['host']}{self.gateway.template.base_path}"

    def _openapi(self, request: Request) -> Any:
        """Read the document, with this server in the place of the stages; afresh, while it is being written."""
        document = yaml.safe_load((ROOT / "openapi.yaml").read_text("utf-8"))
        return document | {
            "servers": [{"url": self._base_url(request), "description": "this machine"}]
        }


def _page(content: str | bytes, media_type: str) -> Response:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return Response(content, media_type=media_type, headers=headers)


def _shown(target: str) -> str:
    """Write a request target for the terminal: on one line, not too long, and without a key."""
    while (decoded := unquote(target)) != target:
        target = decoded
    return "".join(
        c if c.isprintable() else f"\\x{ord(c):02x}" for c in _KEY.sub(r"\1...", target)[:200]
    )
