"""The emulator's process: ministack, with each stage of an API at the address `/STAGE` too, as execute-api has it.

Run by an interpreter without any library: functions run by it too, and on Lambda they find only what their layer has.
It ends with stdin, and so with its parent however that dies.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202, SLF001

import asyncio
import os
import sys
from functools import partial


def serve_stages(app, gateway):
    """Serve stages as API Gateway does; pass everything else on to the emulator as it is."""

    async def serve(scope, receive, send):
        stage = scope["path"].split("/")[1] if scope["type"] == "http" else ""
        for api in [api for api, stages in gateway._stages_v1.items() if stage in stages]:
            given = [
                (b"x-forwarded-port", os.environb[b"GATEWAY_PORT"]),
                (b"x-forwarded-proto", b"http"),
            ]
            headers, path = [*scope["headers"], *given], f"/_aws/execute-api/{api}{scope['path']}"
            scope = {**scope, "headers": headers, "path": path}
        await app(scope, receive, send)

    return serve


def complete_events(gateway):
    """Give proxy events the domain name, which the emulator leaves out.

    https://docs.aws.amazon.com/lambda/latest/dg/services-apigateway.html#apigateway-example-event
    """
    build = gateway._build_lambda_event_v1

    def complete(*arguments, **options):
        event = build(*arguments, **options)
        event["requestContext"]["domainName"] = event["headers"].get("host", "").partition(":")[0]
        return event

    gateway._build_lambda_event_v1 = complete


def main(packages, listener):
    """Serve on a listening socket, by its number, what is installed in a folder."""
    sys.path.append(packages)
    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    from ministack.app import app
    from ministack.services import apigateway_v1
    from ministack.services import lambda_svc as functions

    complete_events(apigateway_v1)
    # A function's reserved concurrency holds for its versions too.
    functions._reserved_concurrency = lambda _, config: functions._functions[
        config["FunctionName"]
    ]["concurrency"]
    # Only the parent's idle connections are left at the end.
    options = {"loglevel": "WARNING", "keep_alive_timeout": 75, "graceful_timeout": 0.2}
    config = Config.from_mapping(bind=[f"fd://{listener}"], **options)
    end = partial(asyncio.to_thread, sys.stdin.read)
    asyncio.run(serve(serve_stages(app, apigateway_v1), config, shutdown_trigger=end))


if __name__ == "__main__":
    main(*sys.argv[1:])
