"""Random damage, and repairs by operators who overlap, die and repeat, while animals are added."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support import handlers
from tests.support.clock import Clock, install_clock
from tests.support.fault_injection import FaultyStore
from tools.deployment.repair import Damage, Item, Repair
from tools.key_table import KeyRecord, KeyTable
from tools.local.events import EXAMPLE_KEY

from animal_store import api_key  # isort: skip - handlers makes its environment

DAY_S = 24 * 60 * 60
CLIENT: Any = handlers.client()
ANIMALS, API_KEYS = handlers.ANIMALS, handlers.API_KEYS
COUNTER = {"pk": {"S": "counter"}, "id": {"N": "0"}}
STOLEN_KEY = api_key.generate("test")
THEFT = Damage(created_by=api_key.digest(STOLEN_KEY)[: api_key.ID_LENGTH])
KEYS = [KeyRecord(digit * 64, digit, 1, expires=2_000_000_000) for digit in "abc"]
# What may be written over an animal, the counter and a key by a slip or on purpose; None: deleted.
ANIMAL_DAMAGE: list[Item | None] = [
    None,
    {"name": {"S": "changed"}, "more": {"S": ""}},
    {"createdBy": {"S": "nobody"}, "createdAt": {"N": "1"}},
]
COUNTER_DAMAGE: list[Item | None] = [None, {"value": {"N": "1"}}, {"value": {"S": "9"}}]
KEY_DAMAGE: list[Item | None] = [None, {"expires": {"N": "9000000000"}}]
RECORD_DAMAGE: list[Item | None] = [
    None,
    {"petId": {"N": "1"}},
    {"expires": {"N": "1"}},
]


class OperatorDiedError(BaseException):
    """The process of an operator is gone."""


@dataclass
class Operator:
    """Runs a repair, until a call before or after which the process dies."""

    copy: int
    dies_at: int
    is_late: bool
    # Before which call another operator, or a creation with or without a key, comes.
    meanwhile: "dict[int, Operator | str]"
    calls: int = 0


def operators(other: st.SearchStrategy[Any]) -> st.SearchStrategy[Operator]:
    calls = st.integers(1, 20)
    meanwhile = st.dictionaries(calls, st.sampled_from(["", "a"]) | other, max_size=3)
    return st.builds(Operator, st.integers(0, 1), calls, st.booleans(), meanwhile)


OPERATORS = operators(operators(st.nothing()))


def items(table: str, partition: str = "pet") -> dict[str, Item]:
    """Read animals by their ids, or other items by their partitions or hashes."""
    found = {}
    for item in handlers.ask("Scan", table)["Items"]:
        if "hash" in item:
            found[item["hash"]["S"]] = item
        elif item["pk"]["S"].startswith(partition):
            found[item["id"]["N"] if partition == "pet" else item["pk"]["S"]] = item
    return found


def damage(table: str, item: Item, members: Item | None) -> None:
    """Change members of an item, or delete it."""
    if members:
        CLIENT.put_item(TableName=table, Item=item | members)
    else:
        key = {name: item[name] for name in ("hash", "pk", "id") if name in item}
        CLIENT.delete_item(TableName=table, Key=key)


class Repairs(RuleBasedStateMachine):
    """One history: what was acknowledged, and what of it is damaged."""

    clock: ClassVar[Clock]

    def __init__(self) -> None:
        super().__init__()
        self.store = FaultyStore()
        for key in (EXAMPLE_KEY, STOLEN_KEY):
            handlers.add_key(key, expires={"N": "2000000000"})
        keys = KeyTable(CLIENT, API_KEYS)
        for record in KEYS:
            keys.put(record)
        CLIENT.meta.events.register_first("before-send.dynamodb", self.answer)
        self.running: list[Operator] = []
        self.pets = items(ANIMALS)  # as acknowledged
        self.keys = items(API_KEYS)  # as issued and revoked
        self.lost: set[str] = set()  # deleted: their ids may be given again
        self.made: dict[str, tuple[str, float]] = {}  # with each Idempotency-Key
        self.is_damaged = False
        self.moments: list[float] = []
        self.copied: dict[
            str, Item
        ] = {}  # by the first copy: animals, records and keys
        self.theft = Damage()
        self.add("a")  # has a record that can be damaged

    def teardown(self) -> None:
        CLIENT.meta.events.unregister("before-send.dynamodb", self.answer)
        self.store.close()

    def answer(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse | None:
        """Let an operator die at its call, and others come before it."""
        if not self.running:
            return None
        operator = self.running[-1]
        operator.calls += 1
        if operator.calls > operator.dies_at:  # what its threads still had to do
            raise OperatorDiedError
        match operator.meanwhile.get(operator.calls):
            case Operator() as other:
                self.run(other)
            case str(key):
                self.add(key)
        if operator.calls < operator.dies_at:
            return None
        if operator.calls == operator.dies_at and operator.is_late:
            handlers.DATABASE.answer(event_name, request)
        raise OperatorDiedError

    @precondition(lambda self: not self.is_damaged and len(self.moments) < 2)
    @rule()
    def copy(self) -> None:
        self.clock.advance(61)
        for table in (ANIMALS, API_KEYS):
            request = next(
                each.request
                for each in handlers.TEMPLATE.tables.values()
                if each.name == table
            )
            name = f"{table}-{len(self.moments)}"
            CLIENT.create_table(**request | {"TableName": name})
            for item in handlers.ask("Scan", table)["Items"]:
                CLIENT.put_item(TableName=name, Item=item)
        self.moments.append(self.clock.wall)
        self.copied = self.copied or self.pets | items(ANIMALS, "idem") | self.keys

    @rule(key=st.sampled_from(["", "a", "b"]), stolen=st.booleans())
    def add(self, key: str, *, stolen: bool = False) -> None:
        if stolen and not self.is_damaged:
            return
        headers = {"Idempotency-Key": [key]} if key else {}
        if stolen:
            headers |= {"Authorization": [f"Bearer {STOLEN_KEY}"]}
            key = key and f"stolen {key}"
        response = handlers.send("create-201", headers=headers)
        if response.status != 201:
            assert self.is_damaged
            return
        pet_id = str(response.body["id"])
        before, made = self.made.get(key, (pet_id, 0.0))
        if "Idempotency-Replayed" in response.headers:
            assert self.is_damaged or before == pet_id, "another animal than the key's"
            return
        assert self.is_damaged or self.clock.wall >= made + DAY_S, "a key made two"
        assert pet_id not in self.pets or pet_id in self.lost, "an id was given twice"
        if pet_id in self.lost:
            self.lost.discard(pet_id)
            for name in [name for name in self.made if self.made[name][0] == pet_id]:
                del self.made[name]
        self.pets[pet_id] = items(ANIMALS)[pet_id]
        if key:
            self.made[key] = pet_id, self.clock.wall

    @rule(hours=st.sampled_from([1, 23]))
    def wait(self, hours: int) -> None:
        self.clock.advance(hours * 3600)

    @rule(digest=st.sampled_from([key.hash for key in KEYS]))
    def revoke(self, digest: str) -> None:
        if digest in items(API_KEYS):
            KeyTable(CLIENT, API_KEYS).revoke(digest)
            item = items(API_KEYS)[digest]
            for name in ("revoked", "revokedBy"):
                self.keys[digest] = self.keys[digest] | {name: item[name]}

    @precondition(lambda self: self.moments)
    @rule(members=st.sampled_from(COUNTER_DAMAGE))
    def damage_counter(self, members: Item | None) -> None:
        self.is_damaged = True
        damage(ANIMALS, COUNTER, members)

    @precondition(lambda self: self.moments)
    @rule(data=st.data())
    def damage_item(self, data: st.DataObject) -> None:
        """Damage what the first copy has as it was acknowledged."""
        known = self.pets | self.keys
        found = items(ANIMALS) | items(ANIMALS, "idem") | items(API_KEYS)
        whole = [
            name
            for name in sorted(found.keys() & self.copied.keys())
            if known.get(name, found[name]) == self.copied[name]
        ]
        if not whole:
            return
        self.is_damaged = True
        name = data.draw(st.sampled_from(whole))
        if name in self.keys:
            members = data.draw(st.sampled_from(KEY_DAMAGE))
            damage(API_KEYS, without_revocation(found[name]), members)
        elif name in self.pets:
            members = data.draw(st.sampled_from(ANIMAL_DAMAGE))
            damage(ANIMALS, found[name], members)
            if not members:
                self.lost.add(name)
        else:
            damage(ANIMALS, found[name], data.draw(st.sampled_from(RECORD_DAMAGE)))

    @precondition(lambda self: self.moments)
    @rule(operator=OPERATORS, theft=st.sampled_from([Damage(), THEFT]))
    def repair(self, operator: Operator, theft: Damage) -> None:
        """Let an operator begin a repair, and repeat it undisturbed; then compare everything."""
        self.theft = theft
        self.run(operator)
        left = self.run(Operator(operator.copy, 10_000, False, {}))
        assert left == []
        if theft != Damage():
            self.forget_what_was_stolen()
        assert items(ANIMALS) == self.pets
        assert items(API_KEYS) == self.keys
        (counter,) = items(ANIMALS, "counter").values()
        assert int(counter["value"]["N"]) >= max(map(int, self.pets))
        for record in items(ANIMALS, "idem").values():
            assert record["petId"]["N"] in self.pets
        self.lost.clear()
        self.is_damaged = False
        self.clock.advance(61)  # unknown keys are remembered for a minute
        for key in ("", "a", "b"):
            self.add(key)

    def run(self, operator: Operator) -> list[Any] | None:
        """Run a repair; return what it left, None if its process died."""
        number = min(operator.copy, len(self.moments) - 1)
        animals, keys = (
            Repair(CLIENT, table, f"{table}-{number}", say=lambda _: None, at_once=1)
            for table in (ANIMALS, API_KEYS)
        )
        self.running.append(operator)
        try:
            animals.raise_counter(animals.counter(animals.copy))
            compared = animals.compare_animals(
                self.moments[number], self.theft, self.clock.wall
            )
            return animals.apply(compared) + keys.apply(keys.compare_keys())
        except OperatorDiedError:
            return None
        finally:
            self.running.pop()

    def forget_what_was_stolen(self) -> None:
        for name, item in list(self.pets.items()):
            if not THEFT.includes(item):
                continue
            del self.pets[name]
            if name in self.copied:
                self.pets[name] = self.copied[name]
        self.made = {
            key: made for key, made in self.made.items() if "stolen" not in key
        }


def without_revocation(item: Item) -> Item:
    return {name: item[name] for name in item if not name.startswith("revoked")}


def test_repairs(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers.handler("CreatePetFunction")  # the modules that get the clock
    Repairs.clock = install_clock(monkeypatch)
    run_state_machine_as_test(
        Repairs,
        settings=settings(
            max_examples=150,
            phases=[Phase.generate],  # to shrink a history takes minutes
            deadline=None,
            stateful_step_count=12,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
