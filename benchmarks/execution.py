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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, NamedTuple

import stamina
import trustme

from benchmarks.cases import Case
from benchmarks.packages import (
    AUTHORITY,
    NODE,
    NODE_PROGRAMS,
    OPENSSL,
    PYTHON,
    MeasurementError,
)
from tests.support.handlers import DATABASE, TEMPLATE, function_of

_PYTHON = [str(PYTHON), "-X", "frozen_modules=on", "-m", "awslambdaric", "app.handler"]
# As the managed runtime starts it with 1,024 MB.
_NODE = [
    *(str(NODE_PROGRAMS / "node"), "--expose-gc", "--max-http-header-size=81920"),
    *("--max-semi-space-size=51", "--max-old-space-size=922", "../task/runtime.mjs"),
]
# With randomised addresses the counts would differ.
_COUNTED = [
    *("setarch", "-R", "valgrind", "--tool=cachegrind", "--cache-sim=no"),
    "--cachegrind-out-file=/dev/null",
]

# A chain of three, all RSA like those of DynamoDB.
_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
_INTERMEDIATE = AUTHORITY.create_child_ca(key_type=trustme.KeyType.RSA)
_INTERMEDIATE.issue_cert("127.0.0.1", key_type=trustme.KeyType.RSA).configure_cert(_TLS)

# What Lambda sets: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_VARIABLES = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",  # pragma: allowlist secret
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",  # pragma: allowlist secret
    "AWS_SESSION_TOKEN": "benchmark" * 40,  # as long as one of Lambda's
    "AWS_REGION": "eu-central-1",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
    "AWS_LAMBDA_FUNCTION_NAME": "benchmark",
    "AWS_LAMBDA_FUNCTION_VERSION": "1",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
    "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
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

# The headers of each event; the trace is not sampled, as without active tracing.
_INVOCATION = {
    "Content-Type": "application/json",
    "Lambda-Runtime-Aws-Request-Id": "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
    "Lambda-Runtime-Deadline-Ms": "4102444800000",  # as far ahead as a slow simulator needs
    "Lambda-Runtime-Invoked-Function-Arn": (
        "arn:aws:lambda:eu-central-1:123456789012:function:benchmark"
    ),
    "Lambda-Runtime-Trace-Id": "Root=1-67891233-abcdef012345678912345678;Sampled=0",
}

Response = tuple[int, dict[str, str], bytes]  # status, headers and body


class Run(NamedTuple):
    """What an execution environment used, from the start of its process on."""

    cpu_ms: list[float]
    """Of the process, user and system: before its start, then after each invocation."""
    log: str
    answer: dict[str, Any]  # the last

    @property
    def instructions(self) -> int:
        """How many were counted; an error if they were not."""
        (count,) = re.findall(r"I +refs: +([\d,]+)", self.log)
        return int(count.replace(",", ""))


# Lambda's runtime client gives up connecting after a second, which a busy machine may need.
@stamina.retry(on=MeasurementError, attempts=3, timeout=None)
def observe(
    package: Path, case: Case, invocations: int = 1, *, is_counted: bool = False
) -> Run:
    """Start the function of a case, invoke it as often as asked, end it, check each answer."""
    print(package.name, case.title, "x", invocations, file=sys.stderr)
    event = json.dumps(case.event).encode()
    cpu_ms, answers = [0.0], []
    function = function_of(case.event)
    task = package / function

    def runtime_api(path: str, _headers: Message, body: bytes) -> Response:
        if not path.endswith("/next"):
            answers.append(json.loads(body))
            return 202, {}, b""
        if answers:
            # The clock of another process: clock_getcpuclockid(3).
            cpu_ms.append(time.clock_gettime(~process.pid << 3 | 2) * 1e3)
        if len(answers) == invocations:
            process.terminate()
            return 410, {}, b""
        return 200, _INVOCATION, event

    def dynamodb(_path: str, headers: Message, body: bytes) -> Response:
        request: Any = SimpleNamespace(url="", body=body)
        answer = DATABASE.answer(headers["X-Amz-Target"], request)
        sent = {"Content-Type": "application/x-amz-json-1.0", **answer.headers}
        if case.reconnects:
            sent["Connection"] = "close"
        return answer.status_code, sent, answer.content

    with (
        tempfile.TemporaryFile("w+") as output,
        _serve(dynamodb, _TLS) as dynamodb_port,
        _serve(runtime_api) as runtime_port,
    ):
        process = subprocess.Popen(
            (_COUNTED if is_counted else [])
            + (_NODE if package.name == NODE else _PYTHON),
            cwd=task,
            env={
                **TEMPLATE.functions[function].environment,
                **_VARIABLES,
                "AWS_CA_BUNDLE": str(package / "authorities.pem"),
                "NODE_EXTRA_CA_CERTS": str(package / "authorities.pem"),
                "AWS_ENDPOINT_URL_DYNAMODB": f"https://127.0.0.1:{dynamodb_port}",
                "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{runtime_port}",
                "LAMBDA_TASK_ROOT": str(task),
                "PYTHONPATH": str(package / "CommonLayer/python"),
                "_HANDLER": "app.handler",
            },
            stdout=output,
            stderr=output,
        )
        process.wait()
        output.seek(0)
        log = output.read()
    wrong = [answer for answer in answers if not case.is_right(answer)]
    if wrong or len(answers) < invocations:
        raise MeasurementError(f"{package.name}: {wrong[:1]}\n{log[-3000:]}")
    return Run(cpu_ms, log, answers[-1])


@contextmanager
def _serve(
    respond: Callable[[str, Message, bytes], Response],
    tls: ssl.SSLContext | None = None,
) -> Iterator[int]:
    """Answer requests by path, headers and body while the context lasts; give the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet for headers and body

        def handle(self) -> None:
            with suppress(OSError):  # the client was terminated
                super().handle()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, answer = respond(self.path, self.headers, body)
            self.send_response_only(status)
            # This hangs up after one with `Connection: close`.
            for name, value in (headers | {"Content-Length": str(len(answer))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield server.server_port
        server.shutdown()
