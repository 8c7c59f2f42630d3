"""The service as one ASGI application: the API as API Gateway would answer, and pages about it."""

import json
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import yaml
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import request_response
from starlette.types import Message, Receive, Scope, Send

from tools import ROOT
from tools.local import docs, status
from tools.local.gateway import Gateway

_PAGE_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
# A page of another site that lets its name point to this machine (DNS rebinding) comes with that name.
_LOCAL_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
_MISDIRECTED = {
    "code": "misdirected_request",
    "message": "Only requests for 127.0.0.1, localhost or [::1] are answered here.",
    "status": 421,
}
_KEY = re.compile(r"(animal_(?:live|test)_)[0-9A-Za-z]+")
_LONGEST_TARGET = 200

LogRequest = Callable[[str, str, int, float], object]
"""Takes method, target, status and seconds of a request that has been answered."""


class Application:
    """The ASGI application; its gateway may be exchanged for another at any time."""

    def __init__(self, gateway: Gateway, metrics: status.Metrics, log_request: LogRequest = lambda *_: None) -> None:
        self.gateway = gateway
        self._log_request = log_request
        self._pages: dict[str, Callable[[Request], Response]] = {
            "/": lambda _: RedirectResponse("/docs"),
            "/docs": lambda _: _page(docs.local_page(), "text/html"),
            "/docs/swagger-ui.js": lambda _: _page(docs.swagger_ui()["swagger-ui.js"], "text/javascript"),
            "/docs/swagger-ui.css": lambda _: _page(docs.swagger_ui()["swagger-ui.css"], "text/css"),
            "/openapi.yaml": lambda request: _page(
                yaml.safe_dump(self._openapi(request), sort_keys=False, allow_unicode=True), "application/yaml"
            ),
            "/openapi.json": lambda request: _page(json.dumps(self._openapi(request)), "application/json"),
            "/status": lambda _: _page(status.PAGE.read_bytes(), "text/html"),
            "/status.json": lambda _: _page(json.dumps(metrics.summary(), indent=2), "application/json"),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log it."""
        begin, sent = time.monotonic(), 0

        async def watch(message: Message) -> None:
            nonlocal sent
            sent = message.get("status", sent)
            await send(message)

        page = self._pages.get(scope["path"]) if scope["method"] in {"GET", "HEAD"} else None
        answer = request_response(page or self.gateway.handle)
        if not _LOCAL_HOST.fullmatch(Headers(scope=scope).get("host", "localhost")):
            answer = JSONResponse(_MISDIRECTED, 421, _PAGE_HEADERS)
        await answer(scope, receive, watch)
        target = b"?".join(filter(None, (scope["raw_path"], scope["query_string"]))).decode("latin-1")
        self._log_request(scope["method"], _shown(target), sent, time.monotonic() - begin)

    def _openapi(self, request: Request) -> Any:
        """Read the document, with this server in the place of the stages; afresh, while it is being written."""
        document = yaml.safe_load((ROOT / "openapi.yaml").read_text("utf-8"))
        url = f"http://{request.headers['host']}{self.gateway.template.base_path}"
        return document | {"servers": [{"url": url, "description": "this machine"}]}


def _page(content: str | bytes, media_type: str) -> Response:
    return Response(content, media_type=media_type, headers=_PAGE_HEADERS)


def _shown(target: str) -> str:
    """Write a request target for the terminal: on one line, not too long, and without a key."""
    while (decoded := unquote(target)) != target:
        target = decoded
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in _KEY.sub(r"\1...", target))
    return shown if len(shown) <= _LONGEST_TARGET else shown[:_LONGEST_TARGET] + "..."
