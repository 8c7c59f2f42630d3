"""Run a package under Lambda's own runtime client, hand it events, and read what it uses.

Runtime API: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from queue import Queue
from threading import Thread

import trustme

from benchmarks.fake_dynamodb import FakeDynamoDb
from benchmarks.loopback import Response, serve
from benchmarks.operations import Operation
from benchmarks.packages import (
    AUTHORITY,
    OPENSSL,
    PYTHON,
    TEMPLATE,
    MeasurementError,
    Package,
)

_PYTHON = [str(PYTHON), "-X", "frozen_modules=on", "-m", "awslambdaric", "app.handler"]
_VALGRIND = [
    "setarch",
    "-R",
    "valgrind",
    "--tool=cachegrind",
    "--cache-sim=no",
    "--cachegrind-out-file=/dev/null",
]
"""Writes instruction counts to the log; with randomised addresses the counts would differ."""

# A chain of three, all RSA like those of DynamoDB.
_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
_INTERMEDIATE = AUTHORITY.create_child_ca(key_type=trustme.KeyType.RSA)
_INTERMEDIATE.issue_cert("127.0.0.1", key_type=trustme.KeyType.RSA).configure_cert(_TLS)


# What Lambda sets: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_VARIABLES = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",  # pragma: allowlist secret
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",  # pragma: allowlist secret
    "AWS_SESSION_TOKEN": "benchmark" * 40,  # as long as one of Lambda's
    **dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION"), "eu-central-1"),
    "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
    "AWS_LAMBDA_FUNCTION_NAME": "benchmark",
    "AWS_LAMBDA_FUNCTION_VERSION": "1",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
    "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
    "AWS_XRAY_CONTEXT_MISSING": "LOG_ERROR",
    "AWS_XRAY_DAEMON_ADDRESS": "127.0.0.1:9",  # datagrams, which nobody needs to receive
    "AWS_LAMBDA_LOG_FORMAT": "JSON",
    "AWS_LAMBDA_LOG_LEVEL": "INFO",
    "PATH": os.defpath,
    "LD_LIBRARY_PATH": str(OPENSSL),
    "LANG": "en_US.UTF-8",
    "TZ": ":UTC",
    # Not set by Lambda, where packages are read-only and the order of strings in sets differs
    # from run to run.
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}


class RuntimeApi:
    """Lambda's side of the Runtime API, for one execution environment."""

    def __init__(self) -> None:
        self.events: Queue[bytes] = Queue()
        self.answers: Queue[bytes] = Queue()
        """Has an answer or error once the function waits for another event."""
        self._handed, self._answer = 0, b""

    def respond(self, path: str, _headers: Message, body: bytes) -> Response:
        """Answer a request of the runtime client."""
        if not path.endswith("/next"):
            self._answer = body
            return 202, b"", {}
        if self._handed:
            self.answers.put(self._answer)
        event = self.events.get()
        self._handed += 1
        headers = {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": f"00000000-0000-4000-8000-{self._handed:012d}",
            # The longest that Lambda allows, so that a slow simulator does not reach it.
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + 900) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": (
                "arn:aws:lambda:eu-central-1:123456789012:function:benchmark"
            ),
            # Not sampled, as without active tracing.
            "Lambda-Runtime-Trace-Id": "Root=1-67891233-abcdef012345678912345678;Sampled=0",
        }
        return 200, event, headers


@dataclass
class Run:
    """What an execution environment did, from the start of its process on."""

    cpu_ms: list[float] = field(default_factory=lambda: [0.0])
    """Of the process, user and system: before its start, then after each invocation."""
    requests: int = 0  # to DynamoDB, in the last invocation, like the next three
    read_units: float = 0
    body_bytes: int = 0
    log_bytes: int = 0
    log: str = ""
    instructions: int = 0  # 0: not counted


def observe(
    package: Package,
    operation: Operation,
    invocations: int = 1,
    *,
    kept: int = sys.maxsize,
    is_counted: bool = False,
) -> Run:
    """Start an operation's function, invoke it as often as asked, check every answer, end it.

    DynamoDB hangs up after each invocation but the first `kept`.
    """
    print(package.variant, operation.title, "x", invocations, file=sys.stderr)
    run, api, dynamodb = Run(), RuntimeApi(), FakeDynamoDb()
    event = operation.event()
    route, _ = TEMPLATE.find(event["httpMethod"], event["path"])
    function, task = (
        TEMPLATE.functions[route.function],
        package.functions[route.function],
    )
    with (
        tempfile.NamedTemporaryFile() as output,
        serve(dynamodb.respond, _TLS) as endpoint,
        serve(api.respond) as runtime,
    ):
        log = Path(output.name)
        variables = {
            **function.environment,
            **_VARIABLES,
            "AWS_CA_BUNDLE": str(package.bundle),
            "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
            "AWS_LAMBDA_RUNTIME_API": runtime.removeprefix("http://"),
            "LAMBDA_TASK_ROOT": str(task),
            "PYTHONPATH": str(package.libraries),
            "_HANDLER": "app.handler",
        }
        command = [*_VALGRIND, *_PYTHON] if is_counted else _PYTHON
        process = subprocess.Popen(
            command, cwd=task, env=variables, stdout=output, stderr=output
        )
        Thread(target=_tell_end, args=(process, api.answers), daemon=True).start()
        try:
            for number in range(invocations):
                dynamodb.requests, dynamodb.read_units = 0, 0
                dynamodb.hangs_up = number >= kept
                logged = log.stat().st_size
                api.events.put(json.dumps(event).encode())
                response = json.loads(api.answers.get())
                if not operation.is_right(response):
                    raise MeasurementError(
                        f"{package.variant}: {response}\n{log.read_text()[-3000:]}"
                    )
                run.cpu_ms.append(_cpu_ms(process.pid))
                run.requests, run.read_units = dynamodb.requests, dynamodb.read_units
                run.log_bytes = log.stat().st_size - logged
                run.body_bytes = len(response["body"].encode())
        finally:
            # This ends it at once, but a simulator still writes its counts.
            process.terminate()
            api.events.put(b"")
            process.wait()
        run.log = log.read_text()
    for count in re.findall(r"I +refs: +([\d,]+)", run.log):
        run.instructions = int(count.replace(",", ""))
    return run


def _cpu_ms(pid: int) -> float:
    """Read the processor time of a process from its clock: clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2) * 1e3


def _tell_end(process: subprocess.Popen[bytes], answers: Queue[bytes]) -> None:
    """When a process has ended, put something that is not an answer among the answers."""
    process.wait()
    answers.put(b"{}")
