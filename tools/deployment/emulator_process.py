"""The emulator's process: ministack on a free port, which also stands for the address of one API.

    python emulator_process.py HOST SITE_PACKAGES [NAME=VALUE ...]

Run by an interpreter without any library: functions run by it too, and on Lambda they find only what their layer has.
SITE_PACKAGES is where ministack is installed; the rest goes into its environment. The first line of stdout is the port.
Each line of stdin names an API (its id and its stage) that is served below /STAGE from then on; the process ends with
stdin, and so with its parent however that dies.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202, SLF001

import asyncio
import os
import socket
import sys
import threading
from contextvars import ContextVar

_host: ContextVar[str] = ContextVar("host")
_api: list[str] = []


def serve_api(app, port):
    """Serve the API's stage as execute-api serves its address; pass everything else on to the emulator as it is.

    The emulator tells APIs apart by host names (`<id>.execute-api.localhost`) that most systems cannot resolve.
    """

    async def serve(scope, receive, send):
        if scope["type"] == "http" and _api and scope["path"].startswith(f"/{_api[1]}/"):
            # API Gateway sets these, whatever the client sent.
            given = {
                b"x-forwarded-for": scope["client"][0].encode(),
                b"x-forwarded-port": str(port).encode(),
                b"x-forwarded-proto": b"http",
                b"host": f"{_api[0]}.execute-api.localhost".encode(),
            }
            _host.set(dict(scope["headers"]).get(b"host", b"").decode("latin-1"))
            headers = [pair for pair in scope["headers"] if pair[0] not in given] + list(given.items())
            scope = {**scope, "headers": headers}
        await app(scope, receive, send)

    return serve


def complete_events(gateway):
    """Give proxy events the domain name, which the emulator leaves out, and the host that the client asked.

    https://docs.aws.amazon.com/lambda/latest/dg/services-apigateway.html#apigateway-example-event
    """
    build = gateway._build_lambda_event_v1

    def complete(*arguments, **options):
        event = build(*arguments, **options)
        host = _host.get("")
        event["requestContext"]["domainName"] = host.rpartition(":")[0] or host
        event["headers"]["host"], event["multiValueHeaders"]["host"] = host, [host]
        return event

    gateway._build_lambda_event_v1 = complete


def main() -> None:
    """Serve until stdin ends."""
    host, packages, *settings = sys.argv[1:]
    sys.path.append(packages)
    listener = socket.create_server((host, 0))
    port = listener.getsockname()[1]
    # The last three keep it from starting a file server and a message broker, and from looking for containers.
    settings += [f"GATEWAY_PORT={port}", "LOG_LEVEL=WARNING"]
    settings += ["SFTP_ENABLED=0", "IOT_MTLS_ENABLED=0", "DOCKER_HOST=unix:///nonexistent"]
    os.environ.update(setting.split("=", 1) for setting in settings)

    # Late, because ministack reads the variables above while it is imported.
    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    from ministack.app import app
    from ministack.services import apigateway_v1
    from ministack.services import lambda_svc as functions

    complete_events(apigateway_v1)
    # A function's reserved concurrency holds for its versions too.
    functions._reserved_concurrency = lambda _, config: functions._functions[config["FunctionName"]]["concurrency"]
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.loglevel = "WARNING"
    config.keep_alive_timeout = 75
    config.graceful_timeout = 0.2  # only the parent's idle connections are left by then
    print(port, flush=True)

    async def run() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()

        def listen() -> None:
            for line in sys.stdin:
                _api[:] = line.split()
            loop.call_soon_threadsafe(stop.set)

        threading.Thread(target=listen, daemon=True).start()
        await serve(serve_api(app, port), config, shutdown_trigger=stop.wait)

    asyncio.run(run())


if __name__ == "__main__":
    main()
