"""Random creations, some concurrent and some failing, follow docs/reliability.md's rules."""

import json
import time
from random import Random

import pytest
from botocore.awsrequest import AWSResponse

from tests.support import handlers
from tests.support.clock import Clock
from tests.support.fault_injection import (
    LOST_REQUEST,
    LOST_RESPONSE,
    STORE,
    THROTTLED,
    Attempt,
    Fault,
    after,
    cancelled,
    die,
    error,
)

pytestmark = pytest.mark.slow

DAY_S = 24 * 60 * 60
DONE: Fault = Attempt.carry_out


def conflict(attempt: Attempt) -> AWSResponse | None:
    """Refuse a call because a transaction is writing the same item."""
    if attempt.event_name.endswith("TransactWriteItems"):
        return cancelled("TransactionConflict")(attempt)
    return error(400, "TransactionConflictException")(attempt)


# The faults of a call's attempts. Most calls succeed: otherwise few histories would get far.
CALLS: list[list[Fault]] = [
    *([[DONE]] * 12),
    [LOST_RESPONSE, DONE],
    [THROTTLED] * 3,
    [conflict],
    [LOST_RESPONSE, LOST_REQUEST, LOST_REQUEST],
    [die],
    [after(die)],
]


class History:
    """Creations, and the items that the store has been seen to have.

    Attributes:
        pets: The animals, by id.
        owned: The latest animal of each Idempotency-Key, and when its record expires.
        attempts: The faults of the next attempts.
        met: The faults that the current creation has met.
        depth: The number of creations under way.
    """

    def __init__(self, clock: Clock, seed: int) -> None:
        self.clock, self.chance = clock, Random(seed)
        STORE.reset(self.answer)
        self.pets = {pet["id"]: pet for pet in handlers.pets()}
        self.owned: dict[str, tuple[int, float]] = {}
        self.attempts: list[Fault] = []
        self.met: set[Fault] = set()
        self.depth = self.requests = 0

    def answer(self, attempt: Attempt) -> AWSResponse | None:
        """Answer a request to the store, perhaps after a concurrent creation."""
        if self.depth < 3 and self.chance.random() < 0.2:
            self.create()
        self.attempts = self.attempts or [*self.chance.choice(CALLS)]
        fault = self.attempts.pop(0)
        self.met.add(fault)
        return fault(attempt)

    def wait(self) -> None:
        self.clock.advance(DAY_S // 2)

    def create(self) -> None:
        """Create an animal; check response and store against the rules."""
        key = self.chance.choice(["", "a", "b"])
        self.requests += 1
        # Two creations with one key may have different bodies.
        name = self.chance.choice("xy") if key else f"without key {self.requests}"
        body = {"name": key + name, "categoryId": 1}
        headers = {"Idempotency-Key": [key]} if key else {}
        text = json.dumps(body)
        outer, self.met = self.met, set()
        self.depth += 1
        try:
            response = handlers.send("create-201", headers, DAY_S, body=text)
        except SystemExit:
            response = None
        self.depth -= 1
        met, self.met = self.met, outer
        self.check_store()
        if response is None or response.status == 503:
            assert met - {DONE, LOST_RESPONSE}, "a failure without a reason"
        elif response.status == 422:
            assert self.pets[self.owner(key)]["name"] != body["name"]
        else:
            assert response.status == 201
            pet_id = response.body["id"]
            assert self.pets[pet_id] == response.body == {"id": pet_id, **body}
            assert not key or pet_id == self.owner(key)

    def owner(self, key: str) -> int:
        """Return the animal of a key; 0 if its record has expired."""
        pet_id, expires = self.owned.get(key, (0, 0.0))
        return pet_id if self.clock.wall < expires else 0

    def check_store(self) -> None:
        """Check that no known animal has changed; remember the new ones."""
        pets = {pet["id"]: pet for pet in handlers.pets()}
        assert self.pets.items() <= pets.items(), "an animal changed"
        (counter,) = handlers.items("counter")
        assert max(pets) <= int(counter["value"]["N"])
        for pet_id in pets.keys() - self.pets.keys():
            name = pets[pet_id]["name"]
            if name.startswith("without key"):
                names = [pet["name"] for pet in self.pets.values()]
                assert name not in names, "a request made two animals"
            else:
                assert not self.owner(name[0]), "a key made two animals"
                self.owned[name[0]] = pet_id, self.clock.wall + DAY_S
            self.pets[pet_id] = pets[pet_id]
        records = handlers.items("idempotency#")
        ids = sorted(int(record["createdId"]["N"]) for record in records)
        assert ids == sorted(pet_id for pet_id, _ in self.owned.values())


@pytest.fixture
def history(seed: int, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setattr(time, "sleep", lambda _: None)  # nothing expires in a pause
    return History(clock, seed)


@pytest.mark.parametrize("seed", range(50))
def test_random_creations_are_neither_lost_nor_duplicated(history: History) -> None:
    for _ in range(20):
        history.chance.choice([history.create, history.create, history.wait])()
