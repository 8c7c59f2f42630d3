"""Serves the local store, or another ASGI application, over HTTP in a thread of this process."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from socket import IPPROTO_TCP, TCP_NODELAY, create_server, socket
from threading import Thread
from types import SimpleNamespace
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tools.local.store import Database


@contextmanager
def serve(
    application: Starlette, listener: socket, certificate: str | None = None
) -> Iterator[int]:
    """Serve an application on a socket during the `with` block; yield the port.

    If `certificate` is the path of a file with a certificate and its private key, the application
    is served over HTTPS.
    """
    # Keep a container's connection open between two calls, for up to ten minutes.
    config = uvicorn.Config(
        application, log_config=None, timeout_keep_alive=600, ssl_certfile=certificate
    )
    server = uvicorn.Server(config)
    listener.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)  # see listener.py
    with listener:
        thread = Thread(target=server.run, args=[[listener]])
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def serve_store(
    database: Database, address: str, certificate: str | None = None
) -> Iterator[tuple[int, str]]:
    """Answer DynamoDB requests at an address; yield the port and the only valid access key id.

    Signatures are not verified, because the access key id itself is as hard to guess as a secret.
    """
    access_key_id = secrets.token_hex(16)

    async def answer(request: Request) -> Response:
        authorization = request.headers.get("Authorization", "")
        if f"Credential={access_key_id}/" not in authorization:
            return Response(status_code=403)
        # The store reads only these two attributes of a request.
        sdk_request: Any = SimpleNamespace(url="", body=await request.body())
        target = request.headers["X-Amz-Target"]
        response = await run_in_threadpool(database.answer, target, sdk_request)
        return Response(response.content, response.status_code, response.headers)

    try:
        listener = create_server((address, 0))
    # If the container engine runs in a virtual machine, the address belongs to the virtual machine,
    # which forwards connections to the loopback address of this machine.
    except OSError:
        listener = create_server(("127.0.0.1", 0))
    application = Starlette(routes=[Route("/", answer, methods=["POST"])])
    with serve(application, listener, certificate) as port:
        yield port, access_key_id
