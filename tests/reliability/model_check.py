"""An explicit search through the states of a creation: the layer's own code, on a model of the store, step by step.

Requests run in threads that stop at every call of the store. A schedule says which of them goes on, and what becomes of
its call. All schedules of two requests, and of three with a bounded number of faults, are played from the beginning.

Invariants, in every state:
  I1  no animal is ever replaced: what is under an id stays as it was first written;
  I2  no animal's id is above the counter;
  I3  a record of an Idempotency-Key and the animal that it names were written together: one is there with the other;
  I4  one key has made at most one animal, and one more for each time that its record expired;
  I5  one request without a key has made at most one animal.
And when a request ends:
  I6  an acknowledged animal is there, under its id, as it was sent;
  I7  two answers to one key, its record not expired between them, name the same animal;
  I8  after any history, the same request sent again without a fault is acknowledged.
"""

import contextlib
import copy
import queue
import threading
import types
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from botocore.exceptions import ClientError, ConnectionClosedError

from tests.reliability.harness import load_template
from tests.reliability.report import Row
from tools.local.functions import share_environment
from tools.local.store import use_local_environment

PART = "protocol"
_DAY_S = 24 * 60 * 60
_WAIT_S = 30.0


class Outcome(StrEnum):
    """What becomes of a call of the store."""

    DONE = "done"
    NOT_DONE = "not done, told so"
    LOST = "done, the answer is lost for good"
    RETRIED = "done, the answer is lost, the SDK sends it again"
    FORGOTTEN = "as before, and the store has forgotten the token of the transaction"
    CRASH_BEFORE = "the process dies before it"
    CRASH_AFTER = "the process dies after it"
    CONFLICT = "a transaction that meets another"


_EVERY = (Outcome.DONE, Outcome.NOT_DONE, Outcome.LOST, Outcome.RETRIED, Outcome.CRASH_BEFORE, Outcome.CRASH_AFTER)
_OF_TRANSACTION = (*_EVERY, Outcome.FORGOTTEN, Outcome.CONFLICT)

Item = dict[str, dict[str, str]]


class Crash(BaseException):
    """The process is gone."""


class Violation(AssertionError):
    """An invariant does not hold."""


def _failed(operation: str, code: str, **members: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": 400}, **members}
    return ClientError(response, operation)


@dataclass(slots=True)
class ModelStore:
    """DynamoDB, as far as a creation uses it: every call is atomic."""

    now: float = 1_000_000.0
    items: dict[tuple[str, str], Item] = field(default_factory=dict)
    tokens: dict[int, dict[str, Any]] = field(default_factory=dict)

    def update_item(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Add one to the counter."""
        assert parameters["UpdateExpression"] == "ADD #value :one"
        key = parameters["Key"]
        item = self.items.setdefault((key["pk"]["S"], key["id"]["N"]), {**key, "value": {"N": "0"}})
        item["value"] = {"N": str(int(item["value"]["N"]) + 1)}
        return {"Attributes": {"value": dict(item["value"])}}

    def put_item(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Put an item if its condition holds."""
        there = self._refusing(parameters)
        if there is not None:
            old = {"Item": there} if parameters.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" else {}
            raise _failed("PutItem", "ConditionalCheckFailedException", **old)
        self._put(parameters)
        return {}

    def transact_write_items(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Put all items if all their conditions hold; once for each token, which is the identity of the call."""
        if id(parameters) in self.tokens:
            return {}
        puts = [action["Put"] for action in parameters["TransactItems"]]
        found = [self._refusing(put) for put in puts]
        if any(there is not None for there in found):
            reasons = [
                {"Code": "None"} if there is None else {"Code": "ConditionalCheckFailed", "Item": there}
                for there in found
            ]
            raise _failed("TransactWriteItems", "TransactionCanceledException", CancellationReasons=reasons)
        for put in puts:
            self._put(put)
        self.tokens[id(parameters)] = parameters  # kept, so that no other call gets its identity
        return {}

    def _refusing(self, put: dict[str, Any]) -> Item | None:
        """Return the item for which the condition of a put does not hold."""
        there = self.items.get(self._key(put))
        match put["ConditionExpression"]:
            case "attribute_not_exists(pk)":
                return copy.deepcopy(there)
            case "attribute_not_exists(pk) OR expires <= :now":
                now = int(put["ExpressionAttributeValues"][":now"]["N"])
                return None if there is None or int(there["expires"]["N"]) <= now else copy.deepcopy(there)
            case other:
                raise NotImplementedError(other)

    def _put(self, put: dict[str, Any]) -> None:
        self.items[self._key(put)] = copy.deepcopy(put["Item"])

    @staticmethod
    def _key(put: dict[str, Any]) -> tuple[str, str]:
        return put["Item"]["pk"]["S"], put["Item"]["id"]["N"]

    def pets(self) -> dict[int, str]:
        """Return the names of all animals by id."""
        return {int(number): item["name"]["S"] for (pk, number), item in self.items.items() if pk == "pet"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A request: its animal, which names it, and its Idempotency-Key if it has one."""

    name: str
    key: str | None


class Running:
    """A request in a thread that stops at every call of the store."""

    def __init__(self, kind: Kind, create: Callable[[Kind], Any]) -> None:
        self.kind = kind
        self.pending: str | None = None
        self.acknowledged: int | None = None
        self.ended = False
        self.began_in = 0
        self.error: BaseException | None = None
        self._go: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._stopped: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(create,), daemon=True)

    def start(self) -> None:
        """Run until the first call."""
        self._thread.start()
        self._await()

    def step(self, outcome: Outcome) -> None:
        """Let the pending call have this outcome, and run until the next call or the end."""
        self._go.put(outcome)
        self._await()

    def stop_at(self, call: str) -> Outcome:
        """Stop this thread at a call, and return what is to become of it."""
        self._stopped.put(call)
        return self._go.get(timeout=_WAIT_S)

    def _await(self) -> None:
        self.pending = self._stopped.get(timeout=_WAIT_S)
        if self.pending is None:
            self.ended = True
            self._thread.join()
            if self.error is not None:
                raise Violation(f"{self.kind}: {self.error!r}") from self.error

    def _run(self, create: Callable[[Kind], Any]) -> None:
        from animal_store.errors import ServiceUnavailable

        _current.request = self
        try:
            self.acknowledged = create(self.kind).pet["id"]
        except (Crash, ServiceUnavailable):
            pass  # no answer, or 503: the client knows nothing
        except BaseException as error:  # whatever else it raises would be a 500
            self.error = error
        finally:
            self._stopped.put(None)


_current = threading.local()


class ModelClient:
    """Takes the SDK client's place: stops the request, then does to the store what the schedule says."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        perform: Callable[[dict[str, Any]], Any] = getattr(self._store, operation)

        def call(**parameters: Any) -> Any:
            while (outcome := _current.request.stop_at(operation)) is not Outcome.DONE:
                _raise_undone(operation, outcome)
                with contextlib.suppress(ClientError):  # that answer is lost, too
                    perform(parameters)
                if outcome is Outcome.CRASH_AFTER:
                    raise Crash
                if outcome is Outcome.LOST:
                    raise ConnectionClosedError(endpoint_url="model")
                if outcome is Outcome.FORGOTTEN:
                    self._store.tokens.clear()
            return perform(parameters)

        return call


def _raise_undone(operation: str, outcome: Outcome) -> None:
    """Raise what a call raises that the store has not done."""
    if outcome is Outcome.CRASH_BEFORE:
        raise Crash
    if outcome is Outcome.NOT_DONE:
        raise _failed(operation, "ThrottlingException")
    if outcome is Outcome.CONFLICT:
        reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}]
        raise _failed(operation, "TransactionCanceledException", CancellationReasons=reasons)


@dataclass(slots=True)
class World:
    """One history: the store, the requests, and what has been seen so far."""

    kinds: Sequence[Kind]
    store: ModelStore = field(default_factory=ModelStore)
    requests: list[Running] = field(default_factory=list)
    expiries: int = 0
    _first: dict[int, str] = field(default_factory=dict)

    def create(self, kind: Kind) -> Any:
        """Call the layer."""
        import time

        from animal_store import catalogue, dynamodb

        dynamodb.budget.set(dynamodb.Budget(deadline=time.monotonic() + 3600))
        key = catalogue.IdempotencyKey("caller", kind.key) if kind.key else None
        return catalogue.create_pet({"name": kind.name, "categoryId": 1}, key)

    def begin(self, kind: Kind) -> Running:
        """Start a request."""
        request = Running(kind, self.create)
        request.began_in = self.expiries
        self.requests.append(request)
        request.start()
        return request

    def expire(self) -> None:
        """Let more than a day go by."""
        self.store.now += _DAY_S + 1
        self.expiries += 1

    def check(self) -> None:
        """Hold the state against the invariants."""
        pets = self.store.pets()
        counter = self.store.items.get(("counter", "0"))
        last = int(counter["value"]["N"]) if counter else 0
        for number, name in self._first.items():
            _hold(pets.get(number) == name, "I1", f"{number} was {name}, is {pets.get(number)}")
        self._first.update(pets)
        _hold(all(number <= last for number in pets), "I2", f"{pets} above {last}")
        records = [item for (pk, _), item in self.store.items.items() if pk.startswith("idempotency#")]
        _hold(all(int(record["petId"]["N"]) in pets for record in records), "I3", f"{records} without {pets}")
        made = Counter(pets.values())
        for kind in set(self.kinds):
            if kind.key:
                _hold(bool(records) or not made[kind.name], "I3", f"{pets} without a record")
                _hold(made[kind.name] <= 1 + self.expiries, "I4", f"{kind.name}: {pets}")
            else:
                _hold(made[kind.name] <= 1, "I5", f"{kind.name}: {pets}")
        for request in self.requests:
            if request.acknowledged is not None:
                _hold(pets.get(request.acknowledged) == request.kind.name, "I6", f"{request.acknowledged}: {pets}")
        self._check_answers()

    def _check_answers(self) -> None:
        if self.expiries:
            return
        by_key: dict[str, set[int]] = {}
        for request in self.requests:
            if request.kind.key and request.acknowledged is not None:
                by_key.setdefault(request.kind.key, set()).add(request.acknowledged)
        _hold(all(len(ids) == 1 for ids in by_key.values()), "I7", f"{by_key}")

    def finish(self) -> None:
        """Let what still runs crash, then send each keyed request once more without a fault."""
        for request in self.requests:
            if not request.ended:
                request.step(Outcome.CRASH_BEFORE)
        for kind in {kind for kind in self.kinds if kind.key}:
            again = self.begin(kind)
            while not again.ended:
                again.step(Outcome.DONE)
            _hold(again.acknowledged is not None, "I8", f"{kind}: not acknowledged")
            self.check()


def _hold(condition: bool, invariant: str, state: str) -> None:
    if not condition:
        raise Violation(f"{invariant}: {state}")


EXPIRE = -1
Step = tuple[int, Outcome]
"""Which request goes on (or `EXPIRE`), and the outcome of its pending call."""


def play(kinds: Sequence[Kind], schedule: Sequence[Step], seen: set[Any]) -> list[Step]:
    """Play a schedule from the beginning; then finish.

    Returns:
        The steps that could follow the schedule, before it was finished.
    """
    from animal_store import catalogue, dynamodb

    world = World(kinds)
    dynamodb.client = ModelClient(world.store)  # type: ignore[assignment]
    vars(catalogue)["time"] = types.SimpleNamespace(time=lambda: world.store.now, sleep=lambda _: None)
    requests = [world.begin(kind) for kind in kinds]
    for number, outcome in schedule:
        if number == EXPIRE:
            world.expire()
        else:
            requests[number].step(outcome)
        world.check()
    seen.add(_fingerprint(world))
    following: list[Step] = []
    for number, request in enumerate(requests):
        if not request.ended:
            outcomes = _OF_TRANSACTION if request.pending == "transact_write_items" else _EVERY
            following += [(number, outcome) for outcome in outcomes]
    if following and not world.expiries and any(kind.key for kind in kinds):
        following.append((EXPIRE, Outcome.DONE))
    world.finish()
    return following


def _fingerprint(world: World) -> Any:
    items = tuple(
        sorted((key, repr(sorted(item.items()))) for key, item in world.store.items.items() if key[0] != "pet")
    )
    return (
        items,
        tuple(sorted(world.store.pets().items())),
        world.expiries,
        tuple((request.pending, request.acknowledged, request.ended) for request in world.requests),
    )


def search(kinds: Sequence[Kind], faults: int, depth: int, seen: set[Any]) -> Iterator[Sequence[Step]]:
    """Play every schedule with at most so many faults and steps; yield each.

    Raises:
        Violation: An invariant does not hold; the message has the schedule.
    """
    pending: deque[tuple[Step, ...]] = deque([()])
    while pending:
        schedule = pending.popleft()
        try:
            following = play(kinds, schedule, seen)
        except Violation as violation:
            raise Violation(f"{violation} after {[(n, str(o)) for n, o in schedule]}") from violation
        yield schedule
        if len(schedule) == depth:
            continue
        spent = sum(outcome is not Outcome.DONE or number == EXPIRE for number, outcome in schedule)
        for step in following:
            costs = step[1] is not Outcome.DONE or step[0] == EXPIRE
            if spent + costs <= faults:
                pending.append((*schedule, step))


TWICE = (Kind("keyed", "key"), Kind("keyed", "key"))
MIXED = (Kind("keyed", "key"), Kind("keyed", "key"), Kind("free", None))
FREE = (Kind("free", None), Kind("other", None))


def run(*, quick: bool) -> list[Row]:
    """Run this part; quick: fewer faults in one history."""
    _prepare()
    rows = []
    for title, kinds, faults in (
        ("two requests with one Idempotency-Key", TWICE, 1 if quick else 3),
        ("two requests without", FREE, 1 if quick else 3),
        ("two with one key and one without", MIXED, 0 if quick else 1),
    ):
        seen: set[Any] = set()
        row = Row(PART, f"every history of {title}, up to {faults} faults or expiries")
        try:
            for _ in search(kinds, faults, 12, seen):
                row.runs += 1
        except Violation as violation:
            row.fail(
                "doubles" if any(f"I{number}" in str(violation) for number in (1, 4, 5, 7)) else "losses",
                str(violation),
            )
        row.remark = f"{len(seen):,} different states"
        rows.append(row)
    return rows


def _prepare() -> None:
    """Give the layer the environment that it reads on import."""
    use_local_environment("http://127.0.0.1:9")
    share_environment(load_template().functions.values())
