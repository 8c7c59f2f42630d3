"""Runs a function under Lambda's runtime client, and counts the instructions of its process.

Runtime API: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.handlers import DATABASE, TEMPLATE, Event
from tools.local.listener import listen
from tools.local.store_server import serve, serve_store

# Switch off the randomisation of addresses, because the counts would vary.
_COUNT = ["setarch", "-R", "valgrind", "--tool=cachegrind", "--cache-sim=no"]
_COUNT += ["--cachegrind-out-file=/dev/null"]
# -S leaves out the libraries of this interpreter.
_RUNTIME = [os.path.realpath(sys.executable), "-S", "-m", "awslambdaric", "app.handler"]

# Lambda sets these: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_VARIABLES = {
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "benchmark" * 40,  # Lambda's tokens have about this length
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_LAMBDA_LOG_FORMAT": "JSON",
    "PATH": os.defpath,
    # Lambda does not set these two. They keep the packages unchanged and the order of sets fixed.
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}
_INVOCATION = {
    "Lambda-Runtime-Aws-Request-Id": "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
    "Lambda-Runtime-Deadline-Ms": "4102444800000",  # in 2100, because Valgrind is slow
}


def count(task: Path, libraries: str, event: Event, invocations: int) -> int:
    """Start a function, invoke it repeatedly, check its responses, and terminate it.

    Args:
        task: The folder of its `app.py`. The parent folder has the store's certificate, and the
            authorities that the function trusts.
        libraries: The value of PYTHONPATH.
        event: The event of each invocation.
        invocations: The number of invocations.

    Returns:
        The instructions of the process, from its start and without the kernel's.
    """
    responses: list[Any] = []

    async def next_invocation(_: Request) -> Response:
        if len(responses) < invocations:
            return JSONResponse(event, headers=_INVOCATION)
        process.terminate()
        return Response(status_code=410)

    async def respond(request: Request) -> Response:
        responses.append(await request.json())
        return Response(status_code=202)

    runtime_api = Starlette(
        routes=[
            Route("/2018-06-01/runtime/invocation/next", next_invocation),
            Route("/2018-06-01/runtime/{rest:path}", respond, methods=["POST"]),
        ]
    )
    with (
        serve(runtime_api, listen("127.0.0.1", 0)) as port,
        serve_store(DATABASE, "127.0.0.1", f"{task}/../store.pem") as (store, key_id),
    ):
        variables = {
            "AWS_ACCESS_KEY_ID": key_id,
            "AWS_CA_BUNDLE": f"{task}/../authorities.pem",
            "AWS_ENDPOINT_URL_DYNAMODB": f"https://127.0.0.1:{store}",
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{port}",
            "LAMBDA_TASK_ROOT": str(task),
            "PYTHONPATH": libraries,
        }
        process = subprocess.Popen(
            _COUNT + _RUNTIME,
            cwd=task,
            env=TEMPLATE.environment | _VARIABLES | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output, _ = process.communicate()
    successes = [
        response for response in responses if response.get("statusCode") in {200, 201}
    ]
    if len(successes) < invocations:
        raise SystemExit(f"{task} failed: {responses[:1]}\n{output[-3000:]}")
    return int(output.rpartition(" refs:")[2].split()[0].replace(",", ""))
