"""Runs a function under Lambda's runtime client, and measures what the process needs.

Runtime API: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from werkzeug import Request, Response

from tests.support.handlers import TEMPLATE, Event, service
from tests.support.scripted_server import reply, serve
from tools.local.serve_store import serve_store
from tools.packaging.targets import PYTHON

# With random addresses, the counts would vary: `setarch -R` switches the randomization off.
_VALGRIND = ["setarch", "-R", "valgrind", "--tool=cachegrind", "--cache-sim=no"]
_VALGRIND += ["--cachegrind-out-file=/dev/null"]
# With -S, Python does not import this environment's own libraries.
_RUNTIME = [os.path.realpath(sys.executable), "-S", "-m", "awslambdaric", "app.handler"]

_CONTAINER = ["docker", "run", "--rm", "--network=host", "--cpus=1", "--memory=1g"]
_IMAGE = f"public.ecr.aws/lambda/python:{PYTHON}"
# Starts the function as Lambda's image does. Then prints when it started, in seconds since 1970,
# and the memory that it had at its peak, in KB.
_LAUNCHER = """
import resource, subprocess, time
start = time.time()
subprocess.run(["/lambda-entrypoint.sh", "app.handler"], stderr=subprocess.STDOUT)
print(start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""

# Lambda sets these variables:
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_VARIABLES = {
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "benchmark" * 40,
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_LAMBDA_LOG_FORMAT": "JSON",
}
_INVOCATION = {
    "Lambda-Runtime-Aws-Request-Id": "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
    "Lambda-Runtime-Deadline-Ms": "4102444800000",  # a deadline in 2100, because Valgrind is slow
}


def count_instructions(
    folder: Path, function: str, event: Event, invocations: int
) -> int:
    """Invoke a function several times; return its instructions, without those of the kernel.

    Args:
        folder: The folder that `prepare` has made.
        function: The folder of the function's `app.py`, below that folder.
        event: The event of each invocation.
        invocations: The number of invocations.
    """
    command = partial(_valgrind_command, folder, function)
    output, _, _ = _invoke(command, folder, event, invocations)
    return int(output.rpartition(" refs:")[2].split()[0].replace(",", ""))


def measure_in_container(
    folder: Path, function: str, event: Event
) -> tuple[float, float, float]:
    """Invoke a function 20 times in a new container of Lambda's image, with one processor.

    Returns:
        The memory at its peak in MB, the milliseconds from its start to its first response, and the
        milliseconds of its last call.
    """
    command = partial(_container_command, folder, function)
    output, sent, answered = _invoke(command, folder, event, 20)
    started, peak_kb = output.split()[-2:]
    cold_start = answered[0] - float(started)
    return int(peak_kb) / 1024, 1000 * cold_start, 1000 * (answered[-1] - sent[-1])


def _valgrind_command(
    folder: Path, function: str, variables: dict[str, str]
) -> list[str]:
    layer, task = folder / "CommonLayer", folder / function
    variables |= {
        "AWS_CA_BUNDLE": f"{layer}/amazon-roots.pem",
        "LAMBDA_TASK_ROOT": str(task),
        "PATH": os.defpath,
        # Python looks in `task` first. There the tuned handler finds all its libraries.
        "PYTHONPATH": f"{layer}/python:{folder}",
        # Lambda does not set these two variables.
        "PYTHONDONTWRITEBYTECODE": "1",  # so that Python writes no bytecode into the packages
        "PYTHONHASHSEED": "0",  # so that sets have the same order in each run
    }
    assignments = [f"{name}={value}" for name, value in variables.items()]
    return ["env", "-i", f"--chdir={task}", *assignments, *_VALGRIND, *_RUNTIME]


def _container_command(
    folder: Path, function: str, variables: dict[str, str]
) -> list[str]:
    volumes = [f"-v={folder}/{function}:/var/task:ro"]
    volumes += [f"-v={folder}/CommonLayer:/opt:ro"]
    assignments = [f"--env={name}={value}" for name, value in variables.items()]
    python = ["--entrypoint=/var/lang/bin/python3", _IMAGE, "-c", _LAUNCHER]
    return [*_CONTAINER, *volumes, *assignments, *python]


def _invoke(
    command: Callable[[dict[str, str]], list[str]],
    folder: Path,
    event: Event,
    invocations: int,
) -> tuple[str, list[float], list[float]]:
    """Invoke a function several times, and check its responses.

    Args:
        command: Takes environment variables; returns the command that runs the function with them.
        folder: The folder that `prepare` has made.
        event: The event of each invocation.
        invocations: The number of invocations.

    Returns:
        The output of the process; when each event was sent, and when its response came, in seconds
        since 1970.
    """
    sent: list[float] = []
    answered: list[float] = []
    responses = []

    def runtime_api(request: Request, _: int) -> Response:
        if request.method == "POST":
            answered.append(time.time())
            responses.append(request.json)
            return Response(status=202)
        if len(sent) < invocations:
            sent.append(time.time())
            return reply(event, headers=_INVOCATION)
        # Do not count what Python does at its end. In a container, this signal has no effect;
        # there, the status ends the runtime client.
        process.terminate()
        return Response(status=410)

    with (
        serve(runtime_api) as server,
        serve_store(service().database, "127.0.0.1", f"{folder}/store.pem") as (
            port,
            key_id,
        ),
    ):
        variables = {
            "AWS_ACCESS_KEY_ID": key_id,
            "AWS_ENDPOINT_URL_DYNAMODB": f"https://127.0.0.1:{port}",
            "AWS_LAMBDA_RUNTIME_API": server.origin.removeprefix("http://"),
        }
        process = subprocess.Popen(
            command(TEMPLATE.environment | _VARIABLES | variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output, _ = process.communicate()
    successes = [
        response for response in responses if response.get("statusCode") in {200, 201}
    ]
    if len(successes) < invocations:
        raise SystemExit(f"the function failed: {responses[:1]}\n{output[-3000:]}")
    return output, sent, answered
