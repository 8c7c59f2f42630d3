"""Random damage, and repairs from two moments by operators who overlap, fail, die and repeat."""

import json
from datetime import UTC, datetime
from functools import partial
from operator import methodcaller
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import BotoCoreError, ClientError
from hypothesis import strategies as st
from hypothesis.stateful import rule

from ops.restore import Item, restore
from ops.stage import DeploymentError
from tests.reliability.histories import DONE, Histories, Plan, die, run
from tests.support import handlers
from tests.support.fault_injection import (
    LOST_RESPONSE,
    THROTTLED,
    Attempt,
    Fault,
    after,
    answering,
)

CLIENT: Any = handlers.client()
TABLES = {"AnimalsTable": handlers.ANIMALS, "ApiKeysTable": handlers.API_KEYS}
KEY = {"hash": {"S": "0f"}, "label": {"S": "bob"}}
# What may be written over an item; None: it is deleted.
DAMAGE: list[Item] = [
    {"name": {"S": "changed"}, "more": {"S": ""}},
    {"createdBy": {"S": "nobody"}, "createdAt": {"N": "1"}},
    {"createdAt": {"N": "9000000000"}},
    {"createdId": {"N": "1"}},
    {"value": {"N": "1"}},
    {"expires": {"N": "9000000000"}},
]
STAGE: Any = SimpleNamespace(
    stack="stage",
    deployed=lambda: {f"{name}Name": table for name, table in TABLES.items()},
    client=lambda _: CLIENT,
)
OTHERS: Plan = [
    methodcaller("create"),
    methodcaller("create", "retry"),
    methodcaller("revoke"),
    methodcaller("repair", 0, []),
    methodcaller("repair", 1, []),
]
FAULTS = [THROTTLED, LOST_RESPONSE, die, after(die)]
PLANS = st.lists(st.sampled_from([DONE] * 15 + OTHERS + FAULTS), max_size=30)


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


def check_record(record: Item) -> None:
    """Check that the animal of a record is there, and is the one that it was written with."""
    animal = items()[f"pet {record['createdId']['N']}"]
    born = int(record["expires"]["N"]) - 24 * 60 * 60
    assert animal["createdAt"] == {"N": str(born)}


class Repairs(Histories):
    """What was acknowledged, and whether something of it is damaged."""

    def __init__(self) -> None:
        super().__init__()
        self.plans.append([])
        self.moments: list[datetime] = []
        self.copies: dict[str, Fault] = {}
        self.made = ""  # with the Idempotency-Key
        self.lost: set[str] = set()  # deleted: their ids may be given again
        self.is_damaged = self.is_revoked = self.is_whole = False
        self.pets: dict[str, Item] = {}
        for item in handlers.items():
            write(item, None)
        handlers.ask("PutItem", handlers.API_KEYS, Item=KEY)
        self.create("retry")
        self.create()
        self.copy()
        self.then = items()
        CLIENT.meta.events.register_first("before-send.dynamodb.*", self.meet)

    def teardown(self) -> None:
        try:
            self.check()
        finally:
            super().teardown()
            CLIENT.meta.events.unregister("before-send.dynamodb.*", self.meet)

    def meet(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse | None:
        """Answer an operator: a copy that is asked for is there."""
        asked = json.loads(str(request.body, "utf-8"))  # type: ignore[arg-type]
        copy = self.copies.get(asked["TableName"])
        operation = event_name.rpartition(".")[2]
        attempt = Attempt(event_name, request)
        if copy:
            return copy(attempt)
        assert asked.get("ConsistentRead") or operation in {"PutItem", "UpdateItem"}
        if "createdId" in asked.get("Item", {}):
            check_record(asked["Item"])
        return self.answer(attempt)

    @rule()
    def copy(self) -> None:
        """Let a moment pass that an operator may name: at the first, nothing is damaged."""
        self.clock.advance(10)
        seconds = self.clock.wall
        moment = datetime.fromtimestamp(seconds, UTC)
        for logical, table in TABLES.items():
            made = {"SourceTableArn": f"table/{table}", "RestoreDateTime": seconds}
            copy = {
                "Table": {"RestoreSummary": made},
                "Items": handlers.ask("Scan", table)["Items"],
            }
            name = f"{logical}-{moment}"
            self.copies[name] = answering(200, json.dumps(copy).encode())
        self.moments = [*self.moments[:1], moment]
        self.clock.advance(10)

    @rule(key=st.sampled_from(["", "retry"]))
    def create(self, key: str = "") -> None:
        headers = {"Idempotency-Key": [key]} if key else {}
        response = self.perform(
            [], partial(handlers.send, "create-201", headers=headers)
        )
        assert response
        if response.status != 201:
            assert self.is_damaged
            return
        name = f"pet {response.body['id']}"
        if key:
            assert self.is_damaged or self.made in {"", name}, "a key made two animals"
            if name == self.made or "Idempotency-Replayed" in response.headers:
                return
            self.made = name
        elif name == self.made:
            self.made = ""  # the key's animal is lost
        assert name not in self.pets or name in self.lost, "an id was given twice"
        self.lost.discard(name)
        self.pets[name] = items()[name]

    @rule()
    def revoke(self) -> None:
        if "0f" in (found := items()):
            self.is_revoked = True
            write(found["0f"], {"revoked": {"N": "1"}})

    @rule(
        start=st.sampled_from(["", "counter", "pet", "pet 2", "idempotency", "0f"]),
        members=st.none() | st.sampled_from(DAMAGE),
    )
    def damage(self, start: str, members: Item | None) -> None:
        """Damage what is as the first copy has it, and the counter."""
        for name, item in items().items():
            is_intact = name == "counter 0" or item == self.then.get(name)
            if name.startswith(start) and is_intact:
                self.is_damaged, self.is_whole = True, False
                self.lost.add(name)
                write(item, members)

    @rule(which=st.integers(0, 1), plan=PLANS)
    def repair(self, which: int, plan: Plan) -> None:
        """Let an operator repair both tables."""
        at = self.moments[which % len(self.moments)]
        is_certain = LOST_RESPONSE not in plan
        ends = [
            self.perform(plan, partial(self.restore, at, table)) for table in TABLES
        ]
        if which == 0:
            self.is_whole = is_certain and None not in ends and "refused" not in ends

    def restore(self, at: datetime, table: str) -> str:
        try:
            restore(STAGE, f"{table}-{at}", apply=True)
        except (BotoCoreError, ClientError, DeploymentError) as error:
            return "left" if "later ones" in str(error) else "refused"
        return "done"

    def check(self) -> None:
        """Repair for the last time, and compare with what was acknowledged."""
        self.repair(1, [DONE, methodcaller("repair", 0, [])])
        if not self.is_whole:
            self.repair(0, [])
        self.repair(1, [])
        assert self.is_whole
        found = items()
        assert {name: found[name] for name in found if "pet" in name} == self.pets
        assert "revoked" in found["0f"] if self.is_revoked else found["0f"] == KEY
        last = int(found["counter 0"]["value"]["N"])
        assert all(int(item["id"]["N"]) <= last for item in self.pets.values())
        self.is_damaged = False
        self.clock.advance(60)  # for so long a key that was gone is refused
        self.lost.clear()
        self.create()
        self.create("retry")


def test_repairs_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run(Repairs, monkeypatch, examples=200)
