"""The emulator's process: ministack on two free ports, one for AWS, one that stands for the API's own address.

Run by an interpreter without any library, never imported: the emulator runs functions by the interpreter that it runs
on itself, and on Lambda they find nothing but what their layer brings.

    python emulator_process.py HOST SITE_PACKAGES [NAME=VALUE ...]

SITE_PACKAGES is where ministack is installed; what follows goes into the environment that it reads its settings from.
The first line of stdout has the two ports. Each line of stdin names the API (by its id) that the second port serves
from then on; the process ends when stdin does, and so with its parent however that dies.
"""

import asyncio
import os
import signal
import socket
import sys
import threading
from contextvars import ContextVar

_host: ContextVar[str] = ContextVar("host")


class ApiAddress:
    """Serves one port as execute-api serves the address of an API; passes the other port on as it is.

    The emulator tells APIs apart by host names (`<id>.execute-api.localhost`) that most systems can not resolve.

    Args:
        app: The emulator, an ASGI application.
        port: The port that stands for the API.
    """

    def __init__(self, app, port):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN204
        self.app, self.port, self.api = app, port, ""

    async def __call__(self, scope, receive, send):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN204
        """Serve one connection or request (ASGI)."""
        if scope["type"] == "http" and scope["server"][1] == self.port:
            headers = [(name, value) for name, value in scope["headers"] if not name.startswith(b"x-forwarded-")]
            host = dict(headers).get(b"host", b"")
            _host.set(host.decode("latin-1"))
            headers = [(name, value) for name, value in headers if name != b"host"]
            # API Gateway sets these, whatever the client sent.
            headers += [
                (b"host", f"{self.api}.execute-api.localhost".encode()),
                (b"x-forwarded-for", scope["client"][0].encode()),
                (b"x-forwarded-port", str(self.port).encode()),
                (b"x-forwarded-proto", b"http"),
            ]
            scope = {**scope, "headers": headers}
        await self.app(scope, receive, send)


def complete_events(gateway):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
    """Give proxy events the domain name, which the emulator leaves out, and the host that the client asked.

    https://docs.aws.amazon.com/lambda/latest/dg/services-apigateway.html#apigateway-example-event
    """
    build = gateway._build_lambda_event_v1  # noqa: SLF001 - the emulator offers no other way

    def complete(*arguments, **options):  # type: ignore[no-untyped-def] # noqa: ANN002, ANN003, ANN202
        event = build(*arguments, **options)
        host = _host.get("")
        event["requestContext"]["domainName"] = host.rpartition(":")[0] or host
        event["headers"]["host"], event["multiValueHeaders"]["host"] = host, [host]
        return event

    gateway._build_lambda_event_v1 = complete  # noqa: SLF001


def main() -> None:
    """Serve until stdin ends."""
    host, packages, *settings = sys.argv[1:]
    sys.path.append(packages)
    listeners = [socket.socket(), socket.socket()]
    for listener in listeners:
        listener.bind((host, 0))
    aws_port, api_port = (listener.getsockname()[1] for listener in listeners)
    os.environ.update((name, value) for name, _, value in (setting.partition("=") for setting in settings))
    os.environ.update(
        {
            "GATEWAY_PORT": str(aws_port),
            "LOG_LEVEL": "WARNING",
            # What else ministack would start or look for: a file server, a message broker, containers to clean up.
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "DOCKER_HOST": "unix:///nonexistent",
        }
    )
    print(aws_port, api_port, flush=True)

    # Late, because ministack reads the variables above while it is imported.
    from hypercorn.asyncio import serve  # type: ignore[import-not-found]
    from hypercorn.config import Config  # type: ignore[import-not-found]
    from ministack.app import app  # type: ignore[import-not-found]
    from ministack.services import apigateway_v1  # type: ignore[import-not-found]

    complete_events(apigateway_v1)  # type: ignore[no-untyped-call]
    served = ApiAddress(app, api_port)  # type: ignore[no-untyped-call]
    config = Config()
    config.bind = [f"fd://{listener.fileno()}" for listener in listeners]
    config.loglevel = "WARNING"
    config.keep_alive_timeout = 75
    config.graceful_timeout = 0.2  # only the parent's idle connections are left by then

    async def run() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)

        def listen() -> None:
            for line in sys.stdin:
                served.api = line.strip()
            loop.call_soon_threadsafe(stop.set)

        async def stopped() -> None:
            await stop.wait()

        threading.Thread(target=listen, daemon=True).start()
        await serve(served, config, shutdown_trigger=stopped)

    asyncio.run(run())


if __name__ == "__main__":
    main()
