"""The routes of `make run`: the API, openapi.yaml, and a page that shows openapi.yaml."""

from pathlib import Path

import yaml
from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route, request_response
from starlette.staticfiles import StaticFiles

from tools.local.gateway import Gateway
from tools.local.openapi import load_openapi

_SWAGGER_UI = ("aws_lambda_powertools", "event_handler/openapi/swagger_ui")
_PAGE = Path(__file__).with_name("docs.html").read_bytes()


def application(gateway: Gateway) -> Starlette:
    """Make the ASGI application that serves a gateway's API."""
    routes = [
        Route("/", RedirectResponse("/docs"), methods=["GET"]),
        Route("/docs", HTMLResponse(_PAGE), methods=["GET"]),
        Mount("/docs", StaticFiles(packages=[_SWAGGER_UI])),
        Route("/openapi.yaml", _openapi),
    ]
    app = Starlette(routes=routes)
    # If the host name of another site led to this machine, the site's pages could send requests
    # here (DNS rebinding). So accept only requests for these hosts.
    hosts = ["127.0.0.1", "localhost"]
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    app.router.default = request_response(gateway.handle)
    return app


def _openapi(request: Request) -> Response:
    """Return openapi.yaml with this server as its only server."""
    servers = [{"url": f"http://{request.headers['host']}/v1"}]
    text = yaml.safe_dump(load_openapi() | {"servers": servers}, sort_keys=False)
    return Response(text, media_type="application/yaml")
