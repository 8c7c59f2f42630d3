"""Random damage, and repairs by operators who overlap, die and repeat, while animals are added."""

import json
import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.support import aws, handlers
from tests.support.clock import Clock, install_clock
from tests.support.fault_injection import FaultyStore
from tools.deployment import repair
from tools.deployment.repair import Item
from tools.deployment.restore import restore
from tools.deployment.stage import DeploymentError
from tools.key_table import KeyTable
from tools.local.events import EXAMPLE_KEY

from animal_store import api_key  # isort: skip - handlers makes its environment

CLIENT: Any = handlers.client()
ANIMALS, API_KEYS = handlers.ANIMALS, handlers.API_KEYS
STOLEN_KEY = api_key.generate("test")
THIEF = api_key.digest(STOLEN_KEY)[: api_key.ID_LENGTH]
KEYS = [EXAMPLE_KEY, STOLEN_KEY, "a", "b"]
# What may be written over an item; None: it is deleted.
DAMAGE: list[Item | None] = [
    None,
    {"name": {"S": "changed"}, "more": {"S": ""}},
    {"createdBy": {"S": "nobody"}, "createdAt": {"N": "1"}},
    {"petId": {"N": "1"}},
    {"value": {"N": "1"}},
    {"value": {"S": "9"}},
    {"expires": {"N": "9000000000"}},
]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Clock:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(repair, "IDS_AT_ONCE", 2)
    handlers.handler("CreatePetFunction")  # the modules that get the clock
    return install_clock(monkeypatch)


class OperatorDiedError(BaseException):
    """The process of an operator is gone."""


@dataclass
class Operator:
    """Repairs both tables, until a write before or after which the process dies.

    Write 0 is that of the counter; then come the animals and their records, and the keys.
    """

    dies_at: float = math.inf
    is_late: bool = False
    # Before a call, by its number, or before the first of an operation.
    meanwhile: "dict[int | str, Step]" = field(default_factory=dict)
    calls: int = 0
    writes: int = 0


Step = Callable[["History"], None]
CREATIONS = [methodcaller("create", key) for key in ("", "a", "b")]
REVOCATIONS = [methodcaller("revoke", api_key.digest(key)) for key in "ab"]
THEFTS = [methodcaller("create", key, STOLEN_KEY) for key in ("", "a")]
NAMES = ["counter", *(f"pet{number}" for number in range(1, 9)), "idempotency"]
NAMES += map(api_key.digest, KEYS)
DAMAGES = st.builds(
    methodcaller, st.just("damage"), st.sampled_from(NAMES), st.sampled_from(DAMAGE)
)
LOSSES = [methodcaller("damage", name, None) for name in ("counter", "pet1")]
CHANGED_KEY = methodcaller("damage", api_key.digest("a"), {"label": {"S": ""}})
WRITES, CALLS = st.integers(0, 4), st.integers(0, 40)
REPAIRS: st.SearchStrategy[Step] = st.nothing()
for _ in range(2):  # another operator may come meanwhile
    OTHERS = st.sampled_from(CREATIONS + REVOCATIONS) | REPAIRS
    MEANWHILE = st.dictionaries(CALLS, OTHERS, min_size=1, max_size=3)
    OPERATORS = st.builds(Operator, WRITES, st.booleans(), MEANWHILE)
    REPAIRS = st.builds(methodcaller, st.just("repair"), OPERATORS)


def items(table: str, partition: str = "") -> dict[str, Item]:
    """Read keys by their hashes, or the other items of a partition by their keys."""
    found = {}
    for item in handlers.ask("Scan", table)["Items"]:
        name = item.get("hash", item.get("pk"))["S"] + item.get("id", {}).get("N", "")
        if name.startswith(partition):
            found[name] = item
    return found


class History:
    """What was acknowledged, and what of it is damaged."""

    def __init__(self, clock: Clock, thief: str, before: list[Step]) -> None:
        self.clock, self.thief = clock, thief
        self.aws = aws.Aws(str)
        self.aws.stack = {"Outputs": aws.OUTPUTS}
        ready = {"Table": {"TableStatus": "ACTIVE", "TableArn": "arn:aws:dynamodb:a"}}
        self.aws.answers["dynamodb:DescribeTable"] = ready
        self.aws.answers["dynamodb:TagResource"] = {"ResponseMetadata": {}}
        del self.aws.answers["dynamodb:Query"]
        self.running: list[Operator] = []
        self.errors: list[str] = []  # of operators
        for key in KEYS:
            handlers.add_key(key, expires={"N": "2000000000"})
        self.pets = items(ANIMALS, "pet")  # as acknowledged
        self.keys = items(API_KEYS)  # as issued and revoked
        self.made: dict[str, str] = {}  # with each Idempotency-Key
        self.lost: set[str] = set()  # deleted: their ids may be given again
        self.is_damaged = False
        for step in before:
            step(self)
        clock.advance(61)
        self.at = datetime.fromtimestamp(clock.wall, UTC)
        for name, table in handlers.TEMPLATE.tables.items():
            copy = f"animal-store-production-{name}-copy-{self.at:%Y%m%dT%H%M%SZ}"
            CLIENT.create_table(**table.request | {"TableName": copy})
            for item in items(table.name).values():
                CLIENT.put_item(TableName=copy, Item=item)
        self.copied = items(ANIMALS) | items(API_KEYS)

    def create(self, key: str, api_key: str = EXAMPLE_KEY) -> None:
        headers = {"Authorization": [f"Bearer {api_key}"]}
        if key:
            headers["Idempotency-Key"] = [key]
        response = handlers.send("create-201", headers=headers)
        if response.status != 201:
            assert self.is_damaged
            return
        name, user = f"pet{response.body['id']}", f"{key} of {api_key}"
        if "Idempotency-Replayed" in response.headers:
            assert self.is_damaged or self.made[user] == name, "not the key's animal"
            return
        assert self.is_damaged or user not in self.made, "a key made two animals"
        assert name not in self.pets or name in self.lost, "an id was given twice"
        self.lost.discard(name)
        self.pets[name] = items(ANIMALS)[name]
        self.made = {each: pet for each, pet in self.made.items() if pet != name}
        if key:
            self.made[user] = name

    def revoke(self, digest: str) -> None:
        if digest in items(API_KEYS):
            KeyTable(CLIENT, API_KEYS).revoke(digest)
            item = items(API_KEYS)[digest]
            revocation = {name: item[name] for name in ("revoked", "revokedBy")}
            self.keys[digest] = self.keys[digest] | revocation

    def damage(self, start: str, members: Item | None) -> None:
        """Damage the counter, or what the copy has as it was acknowledged, by its name."""
        found = items(ANIMALS) | items(API_KEYS)
        known = found | self.pets | self.keys | {"counter0": self.copied["counter0"]}
        intact = [name for name in found if known[name] == self.copied.get(name)]
        name = next((each for each in intact if each.startswith(start)), "")
        if not name:
            return
        self.is_damaged = True
        self.lost.add(name)
        item = found[name]
        table = API_KEYS if "hash" in item else ANIMALS
        if members:
            unrevoked = {each: item[each] for each in item if "revoked" not in each}
            CLIENT.put_item(TableName=table, Item=unrevoked | members)
        else:
            key = {each: item[each] for each in ("hash", "pk", "id") if each in item}
            CLIENT.delete_item(TableName=table, Key=key)

    def repair(self, operator: Operator) -> None:
        self.running.append(operator)
        tables: Any = {"AnimalsTable": self.thief, "ApiKeysTable": ""}
        for table, thief in tables.items():
            try:
                restore(
                    self.aws.stage,
                    self.at.isoformat(),
                    table,
                    apply=True,
                    keep=True,
                    created_by=thief,
                    at_once=1,
                )
            except (OperatorDiedError, DeploymentError) as error:
                self.errors.append(str(error))
        self.running.pop()

    def answer(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse | None:
        """Let others come before an operator's call, and the operator die at a write."""
        operator, operation = self.running[-1], event_name.rpartition(".")[2]
        for place in (operator.calls, operation):
            if step := operator.meanwhile.pop(place, None):
                step(self)
        operator.calls += 1
        asked: Any = json.loads(request.body)  # type: ignore[arg-type]
        if operation in {"GetItem", "Query", "Scan"}:
            assert asked["ConsistentRead"]
        if operation in {"Query", "Scan"}:  # a page holds one item
            request.body = json.dumps(asked | {"Limit": 1}).encode()
        if operation not in {"PutItem", "DeleteItem", "UpdateItem"}:
            return None
        write = operator.writes
        operator.writes += 1
        if write < operator.dies_at:
            return None
        if write == operator.dies_at and operator.is_late:
            handlers.DATABASE.answer(event_name, request)
        raise OperatorDiedError  # also for what its threads still had to do


@settings(
    max_examples=100,
    phases=[Phase.explicit, Phase.generate],  # to shrink a history takes minutes
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(
    before=st.lists(st.sampled_from(CREATIONS + REVOCATIONS), max_size=3),
    after=st.lists(
        st.sampled_from(CREATIONS + REVOCATIONS + THEFTS) | DAMAGES,
        min_size=4,
        max_size=9,
    ),
    operator=OPERATORS,
    thief=st.sampled_from(["", THIEF]),
)
# The counter and an animal are deleted, and the animal's id is given again.
@example([], [*LOSSES, CREATIONS[0]], Operator(), "")
# A key is changed, and is revoked before it is put back.
@example([], [CHANGED_KEY], Operator(meanwhile={"PutItem": REVOCATIONS[0]}), "")
# The record of a stolen animal is deleted, and the animal is not yet.
@example([], [THEFTS[1]], Operator(1, is_late=True), THIEF)
def test_a_repair_after_others_that_died_leaves_what_was_acknowledged(
    clock: Clock, before: list[Step], after: list[Step], operator: Operator, thief: str
) -> None:
    with closing(FaultyStore()):
        history = History(clock, thief, before)
        for step in after:
            step(history)
        events = aws.client("dynamodb").meta.events
        # It comes before the store, which is registered for less of the name.
        events.register("before-send.dynamodb.*", history.answer)
        history.repair(operator)
        history.errors.clear()
        another = methodcaller("repair", Operator())
        history.repair(Operator(meanwhile={"PutItem": another}))
        events.unregister("before-send.dynamodb.*", history.answer)
        kept = {
            name: history.copied.get(name, {})
            if item.get("createdBy") == {"S": thief}
            else item
            for name, item in history.pets.items()
        }
        history.pets = {name: item for name, item in kept.items() if item}

        assert all("given again" in error for error in history.errors)
        assert items(ANIMALS, "pet") == history.pets
        assert items(API_KEYS) == history.keys
        counter = int(items(ANIMALS)["counter0"]["value"]["N"])
        assert counter >= max(int(name.removeprefix("pet")) for name in history.pets)
        for record in items(ANIMALS, "idem").values():
            assert f"pet{record['petId']['N']}" in history.pets
        history.is_damaged = False
        history.lost.clear()
        history.clock.advance(61)  # unknown keys are remembered for a minute
        for create in CREATIONS:
            create(history)
