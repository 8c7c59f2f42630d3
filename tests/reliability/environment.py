"""Run one event in an execution environment of its own: a process, whose calls of the store meet a fault.

The process is a fork of one that has imported everything, so its connections, caches and retry quota are new.
"""

import os
import signal
import threading
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from botocore.awsrequest import AWSResponse

from tests import functions
from tests.fault_injection import TRANSIENT, UNREADABLE, Attempt, Fault, Wire, after
from tests.functions import EVENTS, Response
from tests.reliability.fault_server import DATABASE, FAULT, SocketFault
from tools.local.dynamodb import Database

_GIVE_UP_S = 60
_lock = threading.Lock()  # to start a process, Python asks how others ended, and of two who ask one is told
_processes = get_context("forkserver")
_processes.set_forkserver_preload(["tests.reliability.environment"])


def _kill(_: Attempt) -> AWSResponse:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


KILLS: dict[str, Fault] = {"process killed before": _kill, "process killed after": after(_kill)}
IN_PROCESS = TRANSIENT | UNREADABLE | KILLS


@dataclass(frozen=True)
class Plan:
    """What fails: a call by its number, by which fault, and how many attempts of it."""

    call: int
    fault: str
    attempts: int


@dataclass(frozen=True)
class Outcome:
    """How an invocation ended: its response, None when the process was killed; and the operations that it called."""

    response: Response | None
    calls: list[str]


@dataclass(frozen=True)
class Environment:
    """Where events are run.

    Args:
        database: The file of the store.
        log: What the functions print is appended to this file.
        url: Where requests are sent when one of them is to meet a fault of the socket.
    """

    database: Path
    log: Path
    url: str

    def run(self, event: dict[str, Any], plan: Plan | None = None) -> Outcome:
        """Send an event to its function, in a process of its own."""
        receiver, sender = _processes.Pipe(duplex=False)
        process = _processes.Process(target=self._invoke, args=(event, plan, sender))
        with _lock:
            process.start()
        sender.close()
        try:
            outcome: Outcome = receiver.recv() if receiver.poll(_GIVE_UP_S) else Outcome(None, [])
        except EOFError:
            outcome = Outcome(None, [])
        receiver.close()
        with _lock:
            process.join()
            exit_code = process.exitcode
            process.close()
        if exit_code not in {0, -signal.SIGKILL}:
            raise RuntimeError(f"the process ended with {exit_code}")
        return outcome

    def _invoke(self, event: dict[str, Any], plan: Plan | None, sender: Any) -> None:
        from animal_store import dynamodb

        with self.log.open("a") as file:
            os.dup2(file.fileno(), 1)
        over_socket = plan is not None and plan.fault not in IN_PROCESS
        wire = Wire(dynamodb.client, Database(self.database), self._over() if over_socket else Attempt.carry_out)
        if plan:
            fault = self._over(plan.fault) if over_socket else IN_PROCESS[plan.fault]
            wire.fail(plan.call, *[fault] * plan.attempts)
        response = functions.invoke(event)
        sender.send(Outcome(response, [operation for operation, _ in wire.calls]))

    def _over(self, fault: str = "") -> Fault:
        """Send a request to the server, and tell it what to do to it."""

        def send(attempt: Attempt) -> None:
            # A port that nobody listens on; the server does as it is told.
            attempt.request.url = "http://127.0.0.1:1/" if fault == SocketFault.REFUSED else self.url
            attempt.request.headers[FAULT] = fault
            attempt.request.headers[DATABASE] = str(self.database)

        return send


for _event in EVENTS.values():
    functions.handler(functions.function_of(_event))
