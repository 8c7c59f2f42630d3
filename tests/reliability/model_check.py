"""Search all states of concurrent creations: the functions as they ship, on the embedded store, step by step.

Requests run in threads that stop at every call of the store. A schedule says which of them goes on, and what becomes of
its call. Every schedule is played from the beginning, unless it leads to a state from which all have been played.

Invariants, in every state:
  I1  no animal is ever replaced: what is under an id stays as it was first written;
  I2  no animal's id is above the counter;
  I3  a record of an Idempotency-Key and the animal that it names were written together: one is there with the other;
  I4  one key has made at most one animal, and one more for each time that its record expired;
  I5  one request without a key has made at most one animal.
And when a request ends:
  I6  an acknowledged animal is there, under its id, as it was sent;
  I7  two responses to one key, its record not expired between them, name the same animal;
  I8  after any history, the same request sent again without a fault is acknowledged;
  I9  any other response is 503.
"""

import json
import os
import queue
import threading
import types
import uuid
from collections import Counter, deque
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from botocore import endpoint
from botocore.awsrequest import AWSResponse

from tests import functions
from tests.fault_injection import LOST_REQUEST, LOST_RESPONSE, THROTTLED, Attempt, Fault, after, error, refill_retries
from tests.functions import EVENTS
from tests.reliability.report import Row
from tools.local.dynamodb import Database

PART = "model_check"
_DAY_S = 24 * 60 * 60
_WAIT_S = 30.0


class Crash(BaseException):
    """The process is gone."""


def _crash(_: Attempt) -> AWSResponse:
    raise Crash


def _carry_out_under_another_token(attempt: Attempt) -> AWSResponse:
    body = json.loads(cast("bytes", attempt.request.body)) | {"ClientRequestToken": str(uuid.uuid4())}
    request: Any = types.SimpleNamespace(body=json.dumps(body).encode(), url=attempt.request.url)
    return attempt.database.answer(attempt.event_name, request)


_CONFLICT = [{"Code": "TransactionConflict"}, {"Code": "None"}]
_OUTCOMES: dict[str, list[Fault]] = {
    "done": [],
    "throttled, all attempts": [THROTTLED] * 3,
    "done, all responses lost": [LOST_RESPONSE, LOST_REQUEST, LOST_REQUEST],
    "done, the response lost, sent again": [LOST_RESPONSE],
    "the process dies before it": [_crash],
    "the process dies after it": [after(_crash)],
}
_OUTCOMES_OF_A_TRANSACTION = _OUTCOMES | {
    "done, the response lost, sent again, the token forgotten": [LOST_RESPONSE, _carry_out_under_another_token],
    "meets another transaction": [error(400, "TransactionCanceledException", CancellationReasons=_CONFLICT)],
}
_DONE, _DIES = "done", "the process dies before it"


@dataclass(frozen=True)
class Kind:
    """A request: its animal, which names it, and its Idempotency-Key if it has one."""

    name: str
    key: str | None

    def event(self) -> dict[str, Any]:
        """Make the proxy event."""
        event: dict[str, Any] = deepcopy(EVENTS["create-201"])
        event["body"] = json.dumps({"name": self.name, "categoryId": 1})
        event["multiValueHeaders"] |= {"Idempotency-Key": [self.key]} if self.key else {}
        return event


class Running:
    """A request in a thread that stops at every call of the store."""

    def __init__(self, kind: Kind, world: "World") -> None:
        self.kind = kind
        self.world = world
        self.pending: str | None = None
        self.acknowledged: int | None = None
        self.received: list[Any] = []
        self._faults: deque[Fault] = deque()
        self._go: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stopped: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._wait()

    def step(self, outcome: str) -> None:
        """Let the pending call have this outcome, and run until the next call or the end."""
        self._go.put(outcome)
        self._wait()

    def _wait(self) -> None:
        self.pending = self._stopped.get(timeout=_WAIT_S)
        if self.pending is None:
            self._thread.join()
            _hold(self._problem is None, "I9", f"{self.kind}: {self._problem}")

    def begin_call(self) -> None:
        """Forget the faults of a call before."""
        self._faults.clear()

    def send(self, attempt: Attempt) -> AWSResponse | None:
        """Stop at an attempt of a call, unless its outcome is known, and let it have its outcome."""
        operation = attempt.event_name.rpartition(".")[2]
        if operation == "GetItem":  # the key
            return attempt.carry_out()
        if not self._faults:
            self._stopped.put(operation)
            self._faults.extend(_OUTCOMES_OF_A_TRANSACTION[self._go.get(timeout=_WAIT_S)])
        try:
            response = self._faults.popleft()(attempt) if self._faults else attempt.carry_out()
        except Exception as error:
            self.received.append((self.world.expiries, type(error).__name__))
            raise
        self.received.append((self.world.expiries, response and response.content))
        return response

    def _run(self) -> None:
        _current.request = self
        try:
            response = functions.invoke(self.kind.event())
        except Crash:
            pass  # no response
        except BaseException as error:
            self._problem = repr(error)
        else:
            if response.status == 201:
                self.acknowledged = response.body["id"]
            elif response.status != 503:
                self._problem = repr(response)
        finally:
            self._stopped.put(None)


_current = threading.local()


@dataclass
class World:
    """One history: the store, the requests, and what has been seen so far."""

    kinds: Sequence[Kind]
    database: Database = field(default_factory=functions.new_database)
    now: float = 1_800_000_000.0
    expiries: int = 0
    requests: list[Running] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    pets: dict[int, str] = field(default_factory=dict)

    def play(self, schedule: Sequence["Step"]) -> None:
        """Start all requests, and play a schedule."""
        self.requests += [Running(kind, self) for kind in self.kinds]
        for left, (number, outcome) in enumerate(schedule, 1 - len(schedule)):
            if number == EXPIRE:
                self.now += _DAY_S + 1
                self.expiries += 1
            else:
                self.requests[number].step(outcome)
            if left >= -1:  # what comes before has been checked as a schedule of its own
                self.check()

    def following(self) -> list["Step"]:
        """List the steps that can follow."""
        steps = []
        for number, request in enumerate(self.requests):
            if request.pending:
                transaction = request.pending == "TransactWriteItems"
                steps += [(number, each) for each in (_OUTCOMES_OF_A_TRANSACTION if transaction else _OUTCOMES)]
        return steps + [(EXPIRE, "")] * (bool(steps) and not self.expiries and any(kind.key for kind in self.kinds))

    def state(self) -> str:
        """Write down all that the future depends on; what a request will do depends on what it has received."""
        items = sorted(str({name: item[name] for name in item.keys() - {"token"}}) for item in self.items)
        requests = [(request.acknowledged, request.pending and request.received) for request in self.requests]
        return repr((items, self.expiries, requests))

    def check(self) -> None:
        """Compare the state with the invariants."""
        self.items = functions.items(functions.client(self.database))
        of_kind: dict[str, list[Any]] = {"pet": [], "counter": [], "idempotency": []}
        for item in self.items:
            of_kind[item["pk"]["S"].partition("#")[0]].append(item)
        pets = {int(item["id"]["N"]): item["name"]["S"] for item in of_kind["pet"]}
        last = max((int(item["value"]["N"]) for item in of_kind["counter"]), default=0)
        _hold(self.pets.items() <= pets.items(), "I1", f"{self.pets} became {pets}")
        self.pets = pets
        _hold(all(number <= last for number in pets), "I2", f"{pets} above {last}")
        records = [int(item["petId"]["N"]) for item in of_kind["idempotency"]]
        _hold(pets.keys() >= set(records), "I3", f"records of {records} without {pets}")
        made = Counter(pets.values())
        for kind in set(self.kinds):
            _hold(records or not (kind.key and made[kind.name]), "I3", f"{pets} without a record")
            most = 1 + self.expiries if kind.key else 1
            _hold(made[kind.name] <= most, "I4" if kind.key else "I5", f"{kind.name}: {pets}")
        told: dict[str, set[int]] = {}
        for request in self.requests:
            if request.acknowledged is not None:
                _hold(pets.get(request.acknowledged) == request.kind.name, "I6", f"{request.acknowledged}: {pets}")
                told.setdefault(request.kind.key or f"{id(request)}", set()).add(request.acknowledged)
        _hold(self.expiries or all(len(ids) == 1 for ids in told.values()), "I7", f"{told}")

    def end(self, *, repeat: bool) -> None:
        """Let what still runs crash; then send each request that has a key once more without a fault."""
        for request in self.requests:
            if request.pending:
                request.step(_DIES)
        for kind in {kind for kind in self.kinds if kind.key and repeat}:
            again = Running(kind, self)
            self.requests.append(again)
            while again.pending:
                again.step(_DONE)
            _hold(again.acknowledged is not None, "I8", f"{kind}: not acknowledged")
            self.check()
        functions.discard(self.database)


class Violation(AssertionError):
    """An invariant does not hold."""


def _hold(condition: object, invariant: str, state: str) -> None:
    if not condition:
        raise Violation(f"{invariant}: {state}")


EXPIRE = -1
Step = tuple[int, str]
"""Which request goes on (or `EXPIRE`), and the outcome of its pending call."""


def search(kinds: Sequence[Kind], faults: int, row: Row) -> None:
    """Play every schedule with at most so many faults."""
    seen: dict[str, int] = {}
    pending: deque[tuple[Step, ...]] = deque([()])
    while pending:
        schedule = pending.popleft()
        row.runs += 1
        spent = sum(step[1] != _DONE for step in schedule)
        world = World(kinds)
        _make_current(world)
        try:
            world.play(schedule)
            state, following = world.state(), world.following()
            new = seen.get(state, faults + 1) > spent
            world.end(repeat=new)
        except Violation as violation:
            doubled = any(f"I{number}:" in str(violation) for number in (1, 4, 5, 7))
            row.fail("doubles" if doubled else "losses", f"{violation} after {schedule}")
            return
        if new:
            seen[state] = spent
            pending.extend((*schedule, step) for step in following if spent + (step[1] != _DONE) <= faults)
    row.remark = f"{len(seen):,} different states"


def _make_current(world: World) -> None:
    """Give the layer the clock of a world, and the SDK its whole quota of retries."""
    from animal_store import auth, catalogue, dynamodb

    clock = types.SimpleNamespace(time=lambda: world.now, sleep=lambda _: None)
    for module in (auth, catalogue, endpoint):
        vars(module)["time"] = clock
    refill_retries(dynamodb.client)


TWICE = (Kind("keyed", "key"), Kind("keyed", "key"))
MIXED = (*TWICE, Kind("free", None))
FREE = (Kind("free", None), Kind("other", None))


def run(*, quick: bool) -> list[Row]:
    """Run this part; quick: fewer faults in one history."""
    from animal_store import dynamodb

    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    functions.handler(functions.function_of(EVENTS["create-201"]))
    events: Any = dynamodb.client.meta.events
    events.register("provide-client-params.dynamodb", lambda **_: _current.request.begin_call())
    events.register("before-send.dynamodb", lambda event_name, request, **_: _send(event_name, request))
    rows = []
    for title, kinds, faults in (
        ("two requests with one Idempotency-Key", TWICE, 1 if quick else 3),
        ("two requests without", FREE, 1 if quick else 3),
        ("two with one key and one without", MIXED, 0 if quick else 1),
    ):
        rows.append(Row(PART, f"every history of {title}, up to {faults} faults or expiries"))
        search(kinds, faults, rows[-1])
    return rows


def _send(event_name: str, request: Any) -> AWSResponse | None:
    running: Running = _current.request
    return running.send(Attempt(event_name, request, running.world.database))
