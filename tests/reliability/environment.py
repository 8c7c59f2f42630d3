"""Send an event to its function in an execution environment of its own: a process, whose calls of the store fail.

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

from tests.reliability.socket_faults import CLOSED_EARLY, SOCKET_FAULTS, STALLS
from tests.support import handlers
from tests.support.fault_injection import TRANSIENT, UNREADABLE, Attempt, Fault, FaultyStore, after
from tests.support.handlers import EVENTS, Response
from tools.local.dynamodb import Database

_GIVE_UP_S = 60
_lock = (
    threading.Lock()
)  # two threads that start a process at the same time take each other's notice that one ended
_processes = get_context("forkserver")
_processes.set_forkserver_preload(["tests.reliability.environment"])


def _kill(_: Attempt) -> AWSResponse:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


KILLS: dict[str, Fault] = {
    "process killed before the call": _kill,
    "process killed after the call": after(_kill),
}
FAULTS = TRANSIENT | UNREADABLE | KILLS | SOCKET_FAULTS | STALLS | CLOSED_EARLY


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


def invoke(event: dict[str, Any], database: Path, log: Path, plan: Plan | None = None) -> Outcome:
    """Send an event to its function, in a process of its own, and append what it prints to a file."""
    receiver, sender = _processes.Pipe(duplex=False)
    process = _processes.Process(target=_invoke, args=(event, database, log, plan, sender))
    with _lock:
        process.start()
    sender.close()
    with receiver:
        try:
            outcome: Outcome = receiver.recv() if receiver.poll(_GIVE_UP_S) else Outcome(None, [])
        except EOFError:
            outcome = Outcome(None, [])
    with _lock:
        process.join()
    assert process.exitcode in {0, -signal.SIGKILL}, f"the process ended with {process.exitcode}"
    process.close()
    return outcome


def _invoke(
    event: dict[str, Any], database: Path, log: Path, plan: Plan | None, sender: Any
) -> None:
    from animal_store import dynamodb

    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
    store = FaultyStore(dynamodb.client, Database(database))
    if plan:
        store.fail(plan.call, *[FAULTS[plan.fault]] * plan.attempts)
    response = handlers.invoke(event)
    sender.send(Outcome(response, [operation for operation, _ in store.calls]))


for _event in EVENTS.values():
    handlers.handler(handlers.function_of(_event))
