"""Random histories of creations, some at once, some that fail, by docs/reliability.md's rules."""

import json
from functools import partial
from itertools import chain
from operator import methodcaller
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.reliability.histories import DONE, Histories, Plan, die, run
from tests.support import handlers
from tests.support.fault_injection import (
    LOST_REQUEST,
    LOST_RESPONSE,
    THROTTLED,
    Attempt,
    after,
    cancelled,
    error,
)

pytestmark = pytest.mark.slow

DAY_S = 24 * 60 * 60
Pet = dict[str, Any]


def conflict(attempt: Attempt) -> AWSResponse | None:
    """Refuse a call because a transaction writes the same item; a transaction is made again."""
    if attempt.event_name.endswith("TransactWriteItems"):
        return cancelled("TransactionConflict")(attempt)
    return error(400, "TransactionConflictException")(attempt)


# What the attempts of a call meet. With the first two it succeeds.
OUTCOMES: list[Plan] = [
    [DONE],
    [LOST_RESPONSE, DONE],
    [THROTTLED] * 3,
    [conflict],
    [LOST_RESPONSE, LOST_REQUEST, LOST_REQUEST],
    [die],
    [after(die)],
]
KEYS = st.sampled_from(["", "a", "b"])
# Two creations with one key and different statuses have different bodies.
STATUSES = st.sampled_from(["available", "sold"])
# Most calls are done, so that histories get beyond the first.
CALLS = st.sampled_from([[DONE]] * 3 + OUTCOMES)
ALONE = st.lists(CALLS, max_size=3)
OTHER = st.builds(methodcaller, st.just("create"), KEYS, STATUSES, ALONE)
PLANS = ALONE | st.lists(CALLS | OTHER.map(lambda other: [other]), max_size=4)


class Creations(Histories):
    """Creations, and the items that the store has been seen to have."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0
        self.pets: dict[int, Pet] = {pet["id"]: pet for pet in handlers.pets()}
        # Of each key the latest animal, and when it was made.
        self.made: dict[str, tuple[int, float]] = {}

    @rule(seconds=st.sampled_from([DAY_S // 2, DAY_S]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(key=KEYS, status=STATUSES, calls=PLANS)
    def create(self, key: str, status: str, calls: list[Plan]) -> None:
        self.requests += 1
        name = f"{key} {status}" if key else f"free {self.requests}"
        body = {"name": name, "categoryId": 1, "status": status}
        headers = {"Idempotency-Key": [key]} if key else {}
        send = partial(handlers.send, "create-201", headers, DAY_S)
        owner, plan = self.valid_animal_of(key), list(chain(*calls))
        met = list(plan)

        response = self.perform(plan, partial(send, body=json.dumps(body)))

        self.check_store()
        del met[len(met) - len(plan) :]
        was_alone = not any(isinstance(step, methodcaller) for step in met)
        if response is None or response.status == 503:
            assert {*met} - {DONE, LOST_RESPONSE}, "a failure without a reason"
        elif response.status == 422:
            pet_id, _ = self.made[key]
            assert self.pets[pet_id]["name"] != name, "the body is the same"
            assert owner or not was_alone, "the key was free"
        else:
            assert response.status == 201
            pet_id = response.body["id"]
            assert self.pets[pet_id] == response.body == {"id": pet_id, **body}
            assert not key or self.made[key][0] == pet_id, "not the key's animal"
            is_replayed = "Idempotency-Replayed" in response.headers
            assert is_replayed == (pet_id == owner) or not was_alone

    def valid_animal_of(self, key: str) -> int | None:
        """Return the animal of a key whose record has not expired."""
        pet_id, made = self.made.get(key, (None, 0.0))
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
        named = sorted(int(record["createdId"]["N"]) for record in records)
        assert named == sorted(pet_id for pet_id, _ in self.made.values())
        free = [pet["name"] for pet in pets.values() if pet["name"].startswith("free")]
        assert len(free) == len(set(free)), "a request without a key made two animals"


def test_random_creations_lose_and_double_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(Creations, monkeypatch, examples=50)
