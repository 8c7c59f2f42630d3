"""Runs a function under Lambda's runtime client, and counts the instructions of the process.

Runtime API: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from werkzeug import Request, Response

from tests.support.handlers import TEMPLATE, Event, service
from tests.support.scripted_server import reply, serve
from tools.local.serve_store import serve_store

# With random addresses, the counts would vary: `setarch -R` switches the randomization off.
_VALGRIND = ["setarch", "-R", "valgrind", "--tool=cachegrind", "--cache-sim=no"]
_VALGRIND += ["--cachegrind-out-file=/dev/null"]
# With -S, Python does not import this environment's own libraries.
_RUNTIME = [os.path.realpath(sys.executable), "-S", "-m", "awslambdaric", "app.handler"]

# Lambda sets these variables:
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_VARIABLES = {
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "benchmark" * 40,  # Lambda's tokens have about this length
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_LAMBDA_LOG_FORMAT": "JSON",
    "PATH": os.defpath,
    # Lambda does not set these two variables.
    "PYTHONDONTWRITEBYTECODE": "1",  # so that Python writes no bytecode into the packages
    "PYTHONHASHSEED": "0",  # so that sets have the same order in each run
}
_INVOCATION = {
    "Lambda-Runtime-Aws-Request-Id": "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
    "Lambda-Runtime-Deadline-Ms": "4102444800000",  # a deadline in 2100, because Valgrind is slow
}


def count_instructions(
    task: Path, python_path: str, event: Event, invocations: int
) -> int:
    """Invoke a function several times, check its responses, and count its instructions.

    Args:
        task: The folder of the function's `app.py`. The parent folder contains the certificate of
            the store (`store.pem`), and the certificates of the authorities that the function
            trusts (`authorities.pem`).
        python_path: The value of the environment variable PYTHONPATH.
        event: The event of each invocation.
        invocations: The number of invocations.

    Returns:
        The number of instructions that the process has executed, without those of the kernel.
    """
    responses: list[Any] = []

    def runtime_api(request: Request, _: int) -> Response:
        if request.method == "POST":
            responses.append(request.json)
            return Response(status=202)
        if len(responses) < invocations:
            return reply(event, headers=_INVOCATION)
        process.terminate()
        return Response(status=410)

    with (
        serve(runtime_api) as server,
        serve_store(service().database, "127.0.0.1", f"{task}/../store.pem") as (
            port,
            key_id,
        ),
    ):
        variables = {
            "AWS_ACCESS_KEY_ID": key_id,
            "AWS_CA_BUNDLE": f"{task}/../authorities.pem",
            "AWS_ENDPOINT_URL_DYNAMODB": f"https://127.0.0.1:{port}",
            "AWS_LAMBDA_RUNTIME_API": server.origin.removeprefix("http://"),
            "LAMBDA_TASK_ROOT": str(task),
            "PYTHONPATH": python_path,
        }
        process = subprocess.Popen(
            _VALGRIND + _RUNTIME,
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
