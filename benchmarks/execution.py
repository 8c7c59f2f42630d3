"""One execution environment: start the runtime client on a package, hand it events, read what its process used."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.operations import API_KEY, Operation
from benchmarks.packages import Package, python
from benchmarks.servers import Answer, DynamoDb, FunctionError, RuntimeApi, serve
from benchmarks.table import Animals

_PATIENCE_SECONDS = 300  # for one answer, in the simulator on a busy machine


class MeasurementError(Exception):
    """What was to be measured does not do what it should; a figure of it would mean nothing."""


@dataclass
class Environment:
    """A running execution environment."""

    runtime_api: RuntimeApi
    process: asyncio.subprocess.Process
    started: float
    log: Path
    label: str

    async def invoke(self, operation: Operation, number: int = 0) -> Answer:
        """Invoke the function once and check its answer.

        Raises:
            MeasurementError: The function failed, or answered something else than asked for.
        """
        invocation = asyncio.ensure_future(self.runtime_api.invoke(operation.event(f"request-{number}")))
        ended = asyncio.ensure_future(self.process.wait())
        await asyncio.wait({invocation, ended}, timeout=_PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not invocation.done():
            invocation.cancel()
            raise MeasurementError(f"{self.label}: no answer to {operation.name}\n{self.output()}")
        try:
            answer = invocation.result()
        except FunctionError as error:
            raise MeasurementError(f"{self.label}: {operation.name}: {error}\n{self.output()}") from error
        if operation.status and self.label != "empty" and (mistake := operation.mistake(answer.body)):
            raise MeasurementError(f"{self.label}: {operation.name}: {mistake}\n{self.output()}")
        return answer

    def output(self) -> str:
        """Return the last of what the function has logged."""
        return self.log.read_text(errors="replace")[-3000:]

    def cpu_seconds(self) -> float:
        """Read the processor time that the process has used, threads that have ended included."""
        # clock_getcpuclockid(3), which Python offers for threads only: the bits are the Linux kernel's interface.
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def peak_bytes(self) -> int:
        """Read the most memory that the process has had resident."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
        if match is None:
            raise MeasurementError("the kernel does not tell the peak of memory")
        return int(match[1]) * 1024


@asynccontextmanager
async def start(
    package: Package, operation: Operation, tables: Animals, wrapper: Sequence[str] = ()
) -> AsyncIterator[Environment]:
    """Start the runtime client on the function that answers an operation; it is killed when the context ends.

    Args:
        package: What to run.
        operation: The operation that it will be asked for.
        tables: What DynamoDB holds.
        wrapper: A command to run it under.
    """
    runtime_api = RuntimeApi()
    with tempfile.TemporaryDirectory() as folder, socket.socket(type=socket.SOCK_DGRAM) as xray_daemon:
        xray_daemon.bind(("127.0.0.1", 0))
        log = Path(folder, "log")
        async with serve(runtime_api.handle) as runtime_address, serve(DynamoDb(tables).handle) as store_address:
            task = package.functions[operation.function]
            with log.open("wb") as output:  # noqa: ASYNC230 - opened before anything is timed
                started = time.perf_counter()
                process = await asyncio.create_subprocess_exec(
                    *_obeying_permissions(),
                    *wrapper,
                    *(str(python()), "-X", "frozen_modules=on", "-m", "awslambdaric", package.handler),
                    cwd=task,
                    env={
                        **_lambda_variables(package, task),
                        "AWS_LAMBDA_RUNTIME_API": runtime_address,
                        "AWS_ENDPOINT_URL_DYNAMODB": f"http://{store_address}",
                        "AWS_XRAY_DAEMON_ADDRESS": "{}:{}".format(*xray_daemon.getsockname()),
                    },
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            try:
                yield Environment(runtime_api, process, started, log, package.variant)
            finally:
                # SIGTERM, whose default is to end at once, lets a simulator still write what it has counted.
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
                try:
                    await asyncio.wait_for(process.wait(), 60)
                except TimeoutError:
                    process.kill()
                    await process.wait()
                runtime_api.close()


def new_tables(count: int = 1000) -> Animals:
    """Fill tables with that many animals and the key of the benchmark."""
    return Animals(count, API_KEY)


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


def _lambda_variables(package: Package, task: Path) -> dict[str, str]:
    """Write what Lambda and template.yaml set: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html."""
    return {
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AWS_SESSION_TOKEN": "benchmark" * 40,  # as long as one of Lambda's
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        "AWS_LAMBDA_FUNCTION_NAME": "benchmark",
        "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/benchmark",
        "AWS_LAMBDA_LOG_STREAM_NAME": "2026/12/05/[1]benchmark",
        "AWS_XRAY_CONTEXT_MISSING": "LOG_ERROR",
        "LAMBDA_TASK_ROOT": str(task),
        "_HANDLER": package.handler,
        "PATH": os.defpath,
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "PYTHONPATH": str(package.layer / "python"),
        # Not Lambda's: the order in sets of texts, and so the number of instructions, would differ from run to run.
        "PYTHONHASHSEED": "0",
        "ANIMALS_TABLE": "Animals",
        "API_KEYS_TABLE": "ApiKeys",
        "STAGE": "staging",
        "POWERTOOLS_SERVICE_NAME": "animal-store",
        "POWERTOOLS_METRICS_NAMESPACE": "AnimalStore",
        "POWERTOOLS_LOG_LEVEL": "INFO",
    }
