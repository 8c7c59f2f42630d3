"""Execution environments: Lambda's runtime client runs a package and is handed events; what its process uses is read.

Runtime API: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fake_dynamodb import TEMPLATE, Cost, FakeDynamoDb, fill, tls
from benchmarks.loopback import Response, Server
from benchmarks.operations import API_KEY, Operation
from benchmarks.packages import BUILD, FUNCTIONS, Package, python

_PATIENCE_SECONDS = 300  # for one answer, in the simulator on a busy machine
_DEADLINE_SECONDS = 900  # the longest that Lambda allows, so that a slow simulator meets no deadline
# In memory where there is such a place: how fast this machine's disk is does not matter here.
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108

# What Lambda sets: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_VARIABLES = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "benchmark" * 40,  # as long as one of Lambda's
    **dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION"), "eu-central-1"),
    "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
    "AWS_LAMBDA_FUNCTION_NAME": "benchmark",
    "AWS_LAMBDA_FUNCTION_VERSION": "1",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
    "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
    "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/benchmark",
    "AWS_LAMBDA_LOG_STREAM_NAME": "2026/12/05/[1]benchmark",
    "AWS_XRAY_CONTEXT_MISSING": "LOG_ERROR",
    "PATH": os.defpath,
    "LANG": "en_US.UTF-8",
    "TZ": ":UTC",
    # Not Lambda's: the order in sets of texts, and so the number of instructions, would differ from run to run.
    "PYTHONHASHSEED": "0",
}


class MeasurementError(Exception):
    """What was to be measured does not do what it should; a figure of it would mean nothing."""


class RuntimeApi:
    """Lambda's side of the Runtime API, for one execution environment."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[bytes] = asyncio.Queue()
        self._answer: asyncio.Future[bytes] = asyncio.Future()
        self._idle = asyncio.Event()
        self._number = 0
        self.handed_over = self.answered = 0.0

    async def invoke(self, event: bytes) -> bytes:
        """Hand an event over, and wait until the function has answered and waits for another."""
        self._answer = asyncio.Future()
        self._events.put_nowait(event)
        answer = await self._answer
        await self._idle.wait()
        return answer

    async def respond(self, path: str, _headers: Mapping[str, str], body: bytes) -> Response:
        """Answer a request of the runtime client."""
        if path.endswith("/invocation/next"):
            return await self._next()
        if self._answer.done():
            return Response(403)
        if path.endswith("/response"):
            self.answered = time.perf_counter()
            self._idle.clear()
            self._answer.set_result(body)
        else:  # .../error of an invocation or of the start
            self._answer.set_exception(MeasurementError(body.decode()))
        return Response(202)

    async def _next(self) -> Response:
        self._idle.set()
        event = await self._events.get()
        self._number += 1
        # X-Ray's default rule samples the first request of each second: the first here, not those that follow at once.
        trace = f"Root=1-67891233-abcdef012345678912345678;Parent=0123456789abcdef;Sampled={int(self._number == 1)}"
        headers = {
            "Lambda-Runtime-Aws-Request-Id": f"00000000-0000-4000-8000-{self._number:012d}",
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + _DEADLINE_SECONDS) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-central-1:123456789012:function:benchmark",
            "Lambda-Runtime-Trace-Id": trace,
        }
        self.handed_over = time.perf_counter()
        return Response(200, event, headers)


@dataclass(frozen=True)
class Invocation:
    """What one invocation took: time and processor time in microseconds, DynamoDB's work, and bytes."""

    us: float
    cpu_us: float
    cost: Cost
    log_bytes: int
    body_bytes: int


@dataclass(frozen=True)
class Run:
    """What an execution environment did, from the start of its process on; 0 instructions: not counted."""

    invocations: list[Invocation]
    first_answer_ms: float
    peak_mb: float
    log: str
    instructions: int


def valgrind() -> list[str]:
    """Give the command that counts instructions, without randomised addresses; nothing where valgrind is absent."""
    tool, setarch = shutil.which("valgrind"), shutil.which("setarch")
    return (
        [*([setarch, "-R"] if setarch else []), tool, "--quiet", "--tool=cachegrind", "--cache-sim=no"] if tool else []
    )


async def observe(  # noqa: PLR0913
    package: Package,
    operation: Operation,
    invocations: int,
    *,
    animals: int = 1000,
    reconnects: int = 0,
    counting: bool = False,
    wrapper: Sequence[str] = (),
    pause: float = 0,
) -> Run:
    """Start the function that answers an operation, ask it some times, and end it; every answer is checked.

    DynamoDB hangs up before each of the last `reconnects` invocations; `counting` counts instructions in a simulator;
    the function runs under the command `wrapper`; `pause` seconds lie between an answer and the next event.
    """
    with tempfile.TemporaryDirectory(dir=_MEMORY) as folder:
        counts = Path(folder, "counts")
        shutil.copy(_tables(animals), Path(folder, "tables"))
        command = [*valgrind(), f"--cachegrind-out-file={counts}"] if counting else wrapper
        async with _environment(package, operation, Path(folder), command) as environment:
            invoked = []
            for number in range(invocations):
                if number >= invocations - reconnects:
                    await environment.store.hang_up()
                invoked.append(await environment.invoke(operation, number))
                if pause:
                    await asyncio.sleep(pause)
            peak = _number(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{environment.process.pid}/status"))
        instructions = _number(r"^summary: (\d+)", counts) if counting else 0
        return Run(invoked, environment.first_answer_ms, peak * 1024 / 1e6, environment.log.read_text(), instructions)


@dataclass
class _Environment:
    package: Package
    process: Process
    runtime_api: RuntimeApi
    dynamodb: FakeDynamoDb
    store: Server
    log: Path
    started: float
    first_answer_ms: float = 0.0

    async def invoke(self, operation: Operation, number: int) -> Invocation:
        """Ask once, and check the answer."""
        self.dynamodb.cost = cost = Cost()
        cpu, logged = _cpu_seconds(self.process.pid), self.log.stat().st_size
        answered = asyncio.ensure_future(self.runtime_api.invoke(operation.event(f"request-{number}")))
        ended = asyncio.ensure_future(self.process.wait())
        await asyncio.wait({answered, ended}, timeout=_PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        problem = operation.mistake(answered.result()) if answered.done() else "no answer"
        if problem and (self.package.variant != "empty" or not answered.done()):
            answered.cancel()
            raise MeasurementError(
                f"{self.package.variant}: {operation.name}: {problem}\n{self.log.read_text()[-3000:]}"
            )
        api = self.runtime_api
        self.first_answer_ms = self.first_answer_ms or (api.answered - self.started) * 1000
        return Invocation(
            us=(api.answered - api.handed_over) * 1e6,
            cpu_us=(_cpu_seconds(self.process.pid) - cpu) * 1e6,
            cost=cost,
            log_bytes=self.log.stat().st_size - logged,
            body_bytes=len(json.loads(answered.result())["body"].encode()),
        )


@asynccontextmanager
async def _environment(
    package: Package, operation: Operation, folder: Path, wrapper: Sequence[str]
) -> AsyncIterator[_Environment]:
    """Start the runtime client with all that it needs; it is ended when the context ends."""
    task, log, runtime_api = package.functions[operation.function], folder / "log", RuntimeApi()
    async with contextlib.AsyncExitStack() as stack:
        dynamodb = stack.enter_context(contextlib.closing(FakeDynamoDb(folder / "tables")))
        store = Server(dynamodb.respond, tls())
        output = stack.enter_context(log.open("wb"))
        xray_daemon = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        xray_daemon.bind(("127.0.0.1", 0))
        variables = {
            **_VARIABLES,
            **TEMPLATE.functions[FUNCTIONS[operation.function]].environment,
            "AWS_ENDPOINT_URL_DYNAMODB": f"https://{await stack.enter_async_context(store.run())}",
            "AWS_LAMBDA_RUNTIME_API": await stack.enter_async_context(Server(runtime_api.respond).run()),
            "AWS_XRAY_DAEMON_ADDRESS": "{}:{}".format(*xray_daemon.getsockname()),
            "LAMBDA_TASK_ROOT": str(task),
            "PYTHONPATH": str(package.layer / "python"),
            "_HANDLER": package.handler,
        }
        started = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *(*_obeying_permissions(), *wrapper),
            *(str(python()), "-X", "frozen_modules=on", "-m", "awslambdaric", package.handler),
            cwd=task,
            env=variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            yield _Environment(package, process, runtime_api, dynamodb, store, log, started)
        finally:
            # SIGTERM, whose default is to end at once, lets a simulator still write what it has counted.
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 60)
            except TimeoutError:
                process.kill()
                await process.wait()


def _number(pattern: str, file: Path) -> int:
    """Find a number in a file that the kernel or valgrind has written."""
    match = re.search(pattern, file.read_text(), re.MULTILINE)
    if match is None:
        raise MeasurementError(f"{file} has no {pattern}")
    return int(match[1])


def _cpu_seconds(pid: int) -> float:
    """Read the processor time that a process has used, threads that have ended included."""
    # clock_getcpuclockid(3), which Python offers for threads only: the bits are the Linux kernel's interface.
    return time.clock_gettime((~pid << 3) | 2)


def _tables(animals: int) -> Path:
    """Give the file of tables with that many animals, which is written once."""
    file = BUILD / f"tables-{animals}"
    if not file.exists():
        fill(file, animals, API_KEY)
    return file


def _obeying_permissions() -> list[str]:
    """Give the command that makes root obey permissions, as Lambda's read-only file systems make every function."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise MeasurementError(
            "Run this as an ordinary user, or install setpriv (util-linux): root writes where Lambda lets nobody."
        )
    return [setpriv, "--inh-caps=-dac_override,-dac_read_search", "--bounding-set=-dac_override,-dac_read_search"]
