"""Random histories of creations, some at once, some that fail, by docs/reliability.md's rules."""

import json
import time
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from botocore.awsrequest import AWSResponse
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.support import handlers
from tests.support.clock import Clock, install_clock
from tests.support.fault_injection import (
    LOST_REQUEST,
    LOST_RESPONSE,
    THROTTLED,
    Attempt,
    Fault,
    FaultyStore,
    after,
    cancelled,
    error,
)
from tests.support.handlers import Response

DAY_S = 24 * 60 * 60
Pet = dict[str, Any]


class ProcessDiedError(BaseException):
    """The execution environment is gone."""


def die(_: Attempt) -> AWSResponse:
    raise ProcessDiedError


def conflict(attempt: Attempt) -> AWSResponse | None:
    """Refuse a call because a transaction writes the same item; a transaction is made again."""
    if attempt.event_name.endswith("TransactWriteItems"):
        return cancelled("TransactionConflict")(attempt)
    return error(400, "TransactionConflictException")(attempt)


DONE = "done"
RESPONSE_LOST = "done, the response lost, sent again"
# What meets the attempts of a call. The first two let it succeed; after a conflict, the service
# makes a transaction again; the others end the call for good.
OUTCOMES: dict[str, list[Fault]] = {
    DONE: [],
    RESPONSE_LOST: [LOST_RESPONSE],
    "throttled, all attempts": [THROTTLED] * 3,
    "another transaction at once": [conflict],
    "done, all responses lost": [LOST_RESPONSE, LOST_REQUEST, LOST_REQUEST],
    "the process dies before it": [die],
    "the process dies after it": [after(die)],
}


@dataclass
class Creation:
    """A creation: what its calls meet, and another one that comes between two of its attempts."""

    key: str | None
    # Two creations with one key and different statuses have different bodies.
    status: str
    outcomes: list[str]  # of its calls of the animals' table; all that follow are done
    other: "tuple[int, Creation] | None"  # before which attempt, and which creation
    number: uuid.UUID = field(default_factory=uuid.uuid4)
    faults: deque[Fault] = field(default_factory=deque)  # of the present call
    met: list[str] = field(default_factory=list)
    attempts: int = 0

    def begin_call(self) -> None:
        outcome = self.outcomes.pop(0) if self.outcomes else DONE
        self.met.append(outcome)
        self.faults = deque(OUTCOMES[outcome])

    @property
    def body(self) -> Pet:
        name = f"{self.key} {self.status}" if self.key else f"free {self.number}"
        return {"name": name, "categoryId": 1, "status": self.status}


def creations(other: st.SearchStrategy[Any]) -> st.SearchStrategy[Creation]:
    keys = st.sampled_from([None, "a", "b"])
    statuses = st.sampled_from(["available", "sold"])
    # Most calls are done, so that histories get beyond the first.
    likely = [DONE, DONE, DONE, *OUTCOMES]
    outcomes = st.lists(st.sampled_from(likely), min_size=3, max_size=3)
    return st.builds(Creation, keys, statuses, outcomes, st.none() | other)


ALONE = creations(st.nothing())


class Histories(RuleBasedStateMachine):
    """One history: the store, the creations under way, and what has been seen so far."""

    clock: ClassVar[Clock]

    def __init__(self) -> None:
        super().__init__()
        self.store = FaultyStore(self.answer)
        self.under_way: list[Creation] = []
        self.pets: dict[int, Pet] = {pet["id"]: pet for pet in handlers.pets()}
        # Of each key the latest animal, and when it was made.
        self.made: dict[str, tuple[int, float]] = {}

    def teardown(self) -> None:
        self.store.close()

    def answer(self, attempt: Attempt) -> AWSResponse | None:
        """Perform the other creation if it is its turn, then let the attempt meet its outcome."""
        if attempt.event_name.endswith("GetItem"):  # of the API key
            return attempt.carry_out()
        creation = self.under_way[-1]
        creation.attempts += 1
        if b"attempt=1" in attempt.request.headers["amz-sdk-request"]:
            creation.begin_call()
        if creation.other and creation.other[0] == creation.attempts:
            self.create(creation.other[1])
        fault = creation.faults.popleft() if creation.faults else Attempt.carry_out
        return fault(attempt)

    @rule(seconds=st.sampled_from([DAY_S // 2, DAY_S]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(creation=creations(st.tuples(st.integers(1, 4), ALONE)))
    def create(self, creation: Creation) -> None:
        before, owner = set(self.pets), self.valid_animal_of(creation.key)
        response = self.send(creation)
        self.check_store()
        if response is None or response.status == 503:
            fatal = set(creation.met) - {DONE, RESPONSE_LOST}
            assert fatal, "a failure without a reason"
        elif response.status == 422:
            pet_id, _ = self.made[str(creation.key)]
            name = self.pets[pet_id]["name"]
            assert name != creation.body["name"], "the body is the same"
            assert owner or creation.other, "the key was free"
        else:
            self.check_created(creation, response)
            if not creation.other:
                is_replayed = "Idempotency-Replayed" in response.headers
                assert is_replayed == (response.body["id"] == owner)
                assert is_replayed == (response.body["id"] in before)

    def send(self, creation: Creation) -> Response | None:
        """Send a creation; None when its process died."""
        headers = {"Idempotency-Key": [creation.key]} if creation.key else {}
        body = json.dumps(creation.body)
        event = handlers.make_event("create-201", headers, body=body)
        self.under_way.append(creation)
        try:
            return handlers.invoke(event, seconds=DAY_S)
        except ProcessDiedError:
            return None
        finally:
            self.under_way.pop()

    def check_created(self, creation: Creation, response: Response) -> None:
        assert response.status == 201
        pet_id = response.body["id"]
        assert self.pets[pet_id] == response.body == {"id": pet_id, **creation.body}
        if creation.key:
            assert self.made[creation.key][0] == pet_id, "another animal than the key's"

    def valid_animal_of(self, key: str | None) -> int | None:
        """Return the animal of a key whose record has not expired."""
        pet_id, made = self.made.get(str(key), (None, 0.0))
        return pet_id if self.clock.wall < made + DAY_S else None

    def check_store(self) -> None:
        """Compare the store with what was seen before, and note what is new."""
        pets = {pet["id"]: pet for pet in handlers.pets()}
        assert self.pets.items() <= pets.items(), "an animal changed"
        (counter,) = handlers.items("counter")
        assert max(pets) <= int(counter["value"]["N"])
        for pet_id in pets.keys() - self.pets.keys():
            key = pets[pet_id]["name"].partition(" ")[0]
            if key != "free":
                assert self.valid_animal_of(key) is None, "a key made two animals"
                self.made[key] = pet_id, self.clock.wall
        self.pets = pets
        records = handlers.items("idempotency#")
        named = sorted(int(record["petId"]["N"]) for record in records)
        assert named == sorted(pet_id for pet_id, _ in self.made.values())
        free = [pet["name"] for pet in pets.values() if pet["name"].startswith("free")]
        assert len(free) == len(set(free)), "a request without a key made two animals"


def test_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    Histories.clock = install_clock(monkeypatch)
    monkeypatch.setattr(time, "sleep", lambda _: None)  # nothing expires in a pause
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=100,
            phases=[Phase.generate],  # to shrink a history takes minutes
            deadline=None,
            stateful_step_count=12,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
