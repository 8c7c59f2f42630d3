"""Random histories of the API against a model: the functions as they ship, on the embedded store.

docs/reliability.md lists what must hold after every step.
"""

import json
import types
import uuid
from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore import endpoint
from botocore.awsrequest import AWSResponse
from botocore.retries.quota import RetryQuota
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.support import handlers
from tests.support.fault_injection import (
    LOST_REQUEST,
    LOST_RESPONSE,
    THROTTLED,
    Attempt,
    Fault,
    FaultyStore,
    after,
    error,
)
from tests.support.handlers import EVENTS, Response

_DAY_S = 24 * 60 * 60
_STATUSES = ("available", "sold")
Pet = dict[str, Any]


class Crash(BaseException):
    """The process is gone."""


def _crash(_: Attempt) -> AWSResponse:
    raise Crash


def _forget_token(attempt: Attempt) -> AWSResponse:
    """Carry a transaction out under another token, as DynamoDB does with one that it has forgotten."""
    body = json.loads(cast("bytes", attempt.request.body))
    if "ClientRequestToken" in body:
        body["ClientRequestToken"] = str(uuid.uuid4())
    request: Any = types.SimpleNamespace(body=json.dumps(body).encode(), url=attempt.request.url)
    return attempt.database.answer(attempt.event_name, request)


def _conflict(attempt: Attempt) -> AWSResponse | None:
    """Let a transaction meet another one; anything else is carried out."""
    if not attempt.event_name.endswith("TransactWriteItems"):
        return attempt.carry_out()
    reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}]
    return error(400, "TransactionCanceledException", CancellationReasons=reasons)(attempt)


HARMLESS: dict[str, list[Fault]] = {
    "done": [],
    "done, the response lost, sent again": [LOST_RESPONSE],
    "done, the response lost, sent again, the token forgotten": [LOST_RESPONSE, _forget_token],
    "meets another transaction": [_conflict],
}
FATAL: dict[str, list[Fault]] = {
    "throttled, all attempts": [THROTTLED] * 3,
    "done, all responses lost": [LOST_RESPONSE, LOST_REQUEST, LOST_REQUEST],
    "the process dies before it": [_crash],
    "the process dies after it": [after(_crash)],
}
OUTCOMES = HARMLESS | FATAL


@dataclass(frozen=True)
class Creation:
    """A creation to come; two with one key and different statuses have different content."""

    key: str | None
    status: str
    outcomes: tuple[
        str, ...
    ]  # of its calls of the animals' table, in order; all that follow are done
    between: "tuple[int, Creation] | None"  # another creation, before that attempt of a call


@dataclass
class Running:
    """A creation under way: the outcomes that its calls have met, and the faults of the present call."""

    creation: Creation
    met: list[str] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    attempts: int = 0


def creations(*, nested: bool = True) -> st.SearchStrategy[Creation]:
    """Draw a creation; half of them meet no fault, and half of them no other creation."""
    outcomes = st.just(()) | st.lists(st.sampled_from(list(OUTCOMES)), min_size=1, max_size=3).map(
        tuple
    )
    between: st.SearchStrategy[Any] = st.none()
    if nested:
        between |= st.tuples(st.integers(1, 4), creations(nested=False))
    return st.builds(
        Creation, st.sampled_from([None, "a", "b"]), st.sampled_from(_STATUSES), outcomes, between
    )


class Histories(RuleBasedStateMachine):
    """One history: the store, the requests under way, and what has been seen so far."""

    now: ClassVar[float]
    printed: ClassVar[pytest.CaptureFixture[str]]

    def __init__(self) -> None:
        from animal_store import dynamodb

        super().__init__()
        Histories.now = 1_800_000_000.0
        self.store = FaultyStore(dynamodb.client, handlers.new_database(), self.send)
        self.running: list[Running] = []
        self.pets: dict[int, Pet] = {}
        self.made: dict[
            str | None, tuple[int, float]
        ] = {}  # the latest animal of each key, and when it was made

    def teardown(self) -> None:
        self.store.detach()
        handlers.discard(self.store.database)
        self.printed.readouterr()  # to forget it

    def send(self, attempt: Attempt) -> AWSResponse | None:
        """Perform another creation before an attempt, if there is one, then let the attempt have its outcome."""
        # Reads always succeed, the look at the API key too.
        if not self.running or attempt.event_name.endswith("GetItem"):
            return attempt.carry_out()
        running = self.running[-1]
        running.attempts += 1
        if b"attempt=1" in attempt.request.headers["amz-sdk-request"]:  # a new call
            outcomes, number = running.creation.outcomes, len(running.met)
            running.met.append(outcomes[number] if number < len(outcomes) else "done")
            running.faults = deque(OUTCOMES[running.met[-1]])
        if running.creation.between and running.creation.between[0] == running.attempts:
            self.perform(running.creation.between[1])
        return running.faults.popleft()(attempt) if running.faults else attempt.carry_out()

    @rule(seconds=st.sampled_from([_DAY_S // 2, _DAY_S]))
    def wait(self, seconds: int) -> None:
        Histories.now += seconds

    @rule(creation=creations())
    def perform(self, creation: Creation) -> None:
        """Send a creation, and check its response and the store."""
        before = dict(self.pets)
        owner = self.owner(creation.key)
        name = f"{creation.key} {creation.status}" if creation.key else f"free {uuid.uuid4()}"
        new = {"name": name, "categoryId": 1, "status": creation.status}
        event = deepcopy(EVENTS["create-201"])
        event["body"] = json.dumps(new)
        event["multiValueHeaders"] |= {"Idempotency-Key": [creation.key]} if creation.key else {}
        self.running.append(Running(creation))
        try:
            response: Response | None = handlers.invoke(event)
        except Crash:
            response = None
        met = self.running.pop().met
        self.look()
        if response is None or response.status == 503:
            assert FATAL.keys() & set(met), f"{response} without a reason"
        elif response.status == 422:
            assert self.pets[self.made[creation.key][0]]["name"] != name, "422 for the same content"
        else:
            assert response.status == 201, f"{response}"
            pet = response.body
            assert self.pets.get(pet["id"]) == pet == {**new, "id": pet["id"]}, (
                "not there as acknowledged"
            )
            assert creation.key is None or self.made[creation.key][0] == pet["id"], (
                "another animal than the key's"
            )
        if response and not creation.between:
            assert owner or response.status != 422, "422 for a key that is free"
            if response.status == 201:
                assert (response.body["id"] == owner) == (
                    "Idempotency-Replayed" in response.headers
                ), f"{response}"
                assert owner or response.body["id"] not in before, (
                    "a record that has expired is answered"
                )

    @rule(status=st.sampled_from([None, *_STATUSES]), limit=st.integers(1, 3))
    def walk(self, status: str | None, limit: int) -> None:
        """Read a list page by page; no cursor may fit another filter."""
        query: dict[str, list[str]] | None = {"limit": [str(limit)]} | (
            {"status": [status]} if status else {}
        )
        listed: list[Pet] = []
        while query:
            page = handlers.invoke(EVENTS["list-200"] | {"multiValueQueryStringParameters": query})
            assert page.status == 200
            listed += page.body
            link = urlsplit(page.headers.get("Link", "").partition(">")[0])
            query = parse_qs(link.query) or None
            if query:
                other = {"cursor": query["cursor"]} | ({} if status else {"status": ["sold"]})
                assert (
                    handlers.invoke(
                        EVENTS["list-200"] | {"multiValueQueryStringParameters": other}
                    ).status
                    == 400
                )
        assert listed == [
            pet for _, pet in sorted(self.pets.items()) if status in {None, pet["status"]}
        ]

    @rule(number=st.integers(1, 5))
    def get(self, number: int) -> None:
        response = handlers.invoke(EVENTS["get-200"] | {"pathParameters": {"petId": str(number)}})
        assert (response.body if response.status == 200 else None) == self.pets.get(number), (
            f"{response}"
        )

    def owner(self, key: str | None) -> int | None:
        """Return the animal of a key whose record has not expired, None if there is none."""
        number, made = self.made.get(key, (None, 0.0))
        return number if self.now < made + _DAY_S else None

    def look(self) -> None:
        """Compare the store with what was seen before."""
        of_kind: dict[str, list[Any]] = {"pet": [], "counter": [], "idempotency": []}
        dynamodb = handlers.client(self.store.database)
        for item in handlers.items(dynamodb):
            of_kind[item["pk"]["S"].partition("#")[0]].append(item)
        pets = {pet["id"]: pet for pet in handlers.pets(dynamodb)}
        last = max((int(item["value"]["N"]) for item in of_kind["counter"]), default=0)
        assert self.pets.items() <= pets.items(), f"{self.pets} became {pets}"
        assert all(number <= last for number in pets), f"{pets} above the counter, {last}"
        for number in pets.keys() - self.pets.keys():
            key = pets[number]["name"].partition(" ")[0]
            if key != "free":
                assert self.owner(key) is None, f"a second animal of key {key}: {pets}"
                self.made[key] = number, self.now
        self.pets = pets
        named = sorted(int(item["petId"]["N"]) for item in of_kind["idempotency"])
        assert named == sorted(number for number, _ in self.made.values()), (
            f"records of {named}, {self.made}"
        )
        names = [pet["name"] for pet in pets.values() if pet["name"].startswith("free")]
        assert len(names) == len(set(names)), f"a request without a key made two animals: {names}"


def test_histories(
    long: bool,
    record_property: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from animal_store import auth, catalogue

    Histories.printed = capsys
    clock = types.SimpleNamespace(time=lambda: Histories.now, sleep=lambda _: None)
    for module in (auth, catalogue, endpoint):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(
        RetryQuota, "acquire", lambda *_: True
    )  # as a new execution environment has it
    examples, steps = (1000, 20) if long else (100, 12)
    chosen = settings(max_examples=examples, stateful_step_count=steps, derandomize=not long)
    run_state_machine_as_test(
        Histories, settings=settings(chosen, suppress_health_check=list(HealthCheck))
    )
    record_property(
        f"histories of creations, waits, lists and reads, up to {steps} steps each", examples
    )
