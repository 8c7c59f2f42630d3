"""Random damage, and repairs from two moments by operators who overlap, die and repeat.

Others come before any of an operator's calls: a creation between its two readings, for instance.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from botocore.awsrequest import AWSPreparedRequest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.support import handlers
from tests.support.clock import Clock, install_clock
from tests.support.fault_injection import FaultyStore
from tools.deployment.restore import Item, restore
from tools.deployment.stage import DeploymentError

CLIENT: Any = handlers.client()
TABLES = {"AnimalsTable": handlers.ANIMALS, "ApiKeysTable": handlers.API_KEYS}
OK = SimpleNamespace(status_code=200)
KEY = {"hash": {"S": "0f"}, "label": {"S": "bob"}}
REVOKED = KEY | {"revoked": {"N": "1"}}
# What may be written over an item; None: it is deleted.
DAMAGE: list[Item | None] = [
    None,
    {"name": {"S": "changed"}, "more": {"S": ""}},
    {"createdBy": {"S": "nobody"}, "createdAt": {"N": "1"}},
    {"createdAt": {"N": "9000000000"}},
    {"petId": {"N": "1"}},
    {"value": {"N": "1"}},
    {"expires": {"N": "9000000000"}},
]

STAGE = SimpleNamespace(
    stack="stage",
    announce=lambda: None,
    deployed=lambda: {f"{name}Name": table for name, table in TABLES.items()},
    client=lambda _: CLIENT,
    sleep=lambda _: None,
)


class OperatorDiedError(BaseException):
    """The process of an operator is gone."""


@dataclass
class Operator:
    """Repairs both tables, until the process dies before or after a call."""

    dies_at: int = 1000
    is_late: bool = False
    others: dict[int, str] = field(
        default_factory=dict
    )  # by the calls they come before
    calls: int = 0


OTHERS = st.sampled_from(["create", "retry", "revoke", "repair 0", "repair 1"])
OPERATORS = st.builds(
    Operator,
    st.integers(1, 30),
    st.booleans(),
    st.dictionaries(st.integers(0, 20), OTHERS, max_size=3),
)


def items() -> dict[str, Item]:
    """Read the items of both tables by their names, such as `pet 1`."""
    found = {}
    for table in TABLES.values():
        for item in handlers.ask("Scan", table)["Items"]:
            key = [item[name] for name in ("hash", "pk", "id") if name in item]
            found[" ".join(value for each in key for value in each.values())] = item
    return found


def write(item: Item, members: Item | None) -> None:
    """Write over members of an item; without any, delete it."""
    table = TABLES["ApiKeysTable" if "hash" in item else "AnimalsTable"]
    if members:
        handlers.ask("PutItem", table, Item=item | members)
    else:
        key = {name: item[name] for name in ("hash", "pk", "id") if name in item}
        handlers.ask("DeleteItem", table, Key=key)


class Repairs(RuleBasedStateMachine):
    """What was acknowledged, and whether something of it is damaged."""

    clock: ClassVar[Clock]

    def __init__(self) -> None:
        super().__init__()
        self.store = FaultyStore()
        self.running: list[Operator] = []
        self.moments: list[datetime] = []
        self.copies: dict[str, Any] = {}
        self.made = ""  # with the Idempotency-Key
        self.lost: set[str] = set()  # deleted: their ids may be given again
        self.is_damaged = self.is_revoked = self.is_whole = False
        self.pets: dict[str, Item] = {}
        for item in handlers.items():
            write(item, None)
        handlers.ask("PutItem", handlers.API_KEYS, Item=KEY)
        self.create("retry")
        self.create("create")
        self.copy()
        self.then = items()
        CLIENT.meta.events.register("before-call.dynamodb", self.answer_for_copy)
        CLIENT.meta.events.register_first("before-send.dynamodb.*", self.meet)

    @rule()
    def copy(self) -> None:
        """Let a moment pass that an operator may name: at the first, nothing is damaged."""
        self.clock.advance(10)
        moment = datetime.fromtimestamp(self.clock.wall, UTC)
        for logical, table in TABLES.items():
            made = {"SourceTableArn": f"table/{table}", "RestoreDateTime": moment}
            self.copies[f"stage-{logical}-copy-{moment:%Y%m%dT%H%M%SZ}"] = {
                "Table": {"TableStatus": "ACTIVE", "RestoreSummary": made},
                "Items": handlers.ask("Scan", table)["Items"],
            }
        self.moments = [*self.moments[:1], moment]
        self.clock.advance(10)

    @rule(key=st.sampled_from(["create", "retry"]))
    def create(self, key: str) -> None:
        headers = {"Idempotency-Key": [key]} if key == "retry" else {}
        response = handlers.send("create-201", headers=headers)
        if response.status != 201:
            assert self.is_damaged
            return
        name = f"pet {response.body['id']}"
        if key == "retry":
            assert self.is_damaged or self.made in {"", name}, "a key made two animals"
            if name == self.made or "Idempotency-Replayed" in response.headers:
                return
            self.made = name
        assert name not in self.pets or name in self.lost, "an id was given twice"
        self.lost.discard(name)
        self.pets[name] = items()[name]

    @rule()
    def revoke(self) -> None:
        self.is_revoked = True
        handlers.ask("PutItem", handlers.API_KEYS, Item=REVOKED)

    @rule(
        start=st.sampled_from(["counter", "pet 2", "idempotency", "0f"]),
        members=st.sampled_from(DAMAGE),
    )
    def damage(self, start: str, members: Item | None) -> None:
        """Damage something that is as the first copy has it, or the counter."""
        for name, item in items().items():
            is_intact = name == "counter 0" or item == self.then.get(name)
            if name.startswith(start) and is_intact:
                self.is_damaged, self.is_whole = True, False
                self.lost.add(name)
                write(item, members)
                return

    @rule()
    def give_an_id_again(self) -> None:
        for start in ("counter", "idempotency", "pet 1"):
            self.damage(start, None)
        if self.made == "pet 1":
            self.made = ""
        self.create("create")

    @rule(which=st.integers(0, 1), operator=OPERATORS)
    def repair(self, which: int, operator: Operator) -> None:
        """Let an operator repair both tables."""
        errors = []
        self.running.append(operator)
        for table in TABLES:
            at: Any = self.moments[which % len(self.moments)]
            try:
                restore(STAGE, at, table, apply=True)  # type: ignore[arg-type]
            except (OperatorDiedError, DeploymentError) as error:
                errors.append(str(error))
        self.running.pop()
        if which == 0:
            self.is_whole = all("later ones" in error for error in errors)

    def answer_for_copy(self, params: Any, **_: object) -> Any:
        asked = json.loads(params["body"])
        if "TargetTableName" in asked:  # a restore; the copy is there
            return OK, {}
        copy = self.copies.get(asked["TableName"])
        return (OK, copy) if copy else None

    def meet(self, event_name: str, request: AWSPreparedRequest, **_: object) -> None:
        """Let others come before an operator's call, and its process die there."""
        operator, operation = self.running[-1], event_name.rpartition(".")[2]
        other = operator.others.pop(operator.calls, "")
        operator.calls += 1
        if other.startswith("repair"):
            self.repair(int(other[-1]), Operator())
        elif other == "revoke":
            self.revoke()
        elif other:
            self.create(other)
        asked = json.loads(str(request.body, "utf-8"))  # type: ignore[arg-type]
        assert operation in {"PutItem", "UpdateItem"} or asked["ConsistentRead"]
        if operator.calls >= operator.dies_at:
            if operator.is_late and operator.calls == operator.dies_at:
                handlers.DATABASE.answer(event_name, request)
            raise OperatorDiedError

    def teardown(self) -> None:
        try:
            self.check()
        finally:
            self.store.close()
            CLIENT.meta.events.unregister("before-call.dynamodb", self.answer_for_copy)
            CLIENT.meta.events.unregister("before-send.dynamodb.*", self.meet)

    def check(self) -> None:
        """Repair for the last time, and compare with what was acknowledged."""
        self.repair(1, Operator(others={1: "repair 0"}))
        if not self.is_whole:
            self.repair(0, Operator())
        self.repair(1, Operator())
        assert self.is_whole
        found = items()
        assert {name: found[name] for name in found if "pet" in name} == self.pets
        assert found["0f"] == (REVOKED if self.is_revoked else KEY)
        last = int(found["counter 0"]["value"]["N"])
        assert all(int(item["id"]["N"]) <= last for item in self.pets.values())
        for record in handlers.items("idempotency#"):
            animal = self.pets[f"pet {record['petId']['N']}"]
            born = int(record["expires"]["N"]) - 24 * 60 * 60
            assert animal["createdAt"] == {"N": str(born)}
        self.is_damaged = False
        self.lost.clear()
        self.create("create")
        self.create("retry")


def test_repairs_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers.handler("CreatePetFunction")  # the modules that get the clock
    Repairs.clock = install_clock(monkeypatch)
    run_state_machine_as_test(
        Repairs,
        settings=settings(
            max_examples=40,
            phases=[Phase.generate],  # to shrink a history takes minutes
            deadline=None,
            stateful_step_count=10,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
