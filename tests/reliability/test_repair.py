"""Random damage, and repairs from several copies by operators who overlap, fail, die and repeat."""

import json
from collections.abc import Iterator
from contextlib import chdir, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import BotoCoreError, ClientError

from ops.restore import Item, apply, plan
from ops.stage import DeploymentError
from tests.support import handlers
from tests.support.aws_cli import parse
from tests.support.clock import Clock, install_clock
from tests.support.fault_injection import (
    LOST_RESPONSE,
    STORE,
    THROTTLED,
    Attempt,
    after,
)

pytestmark = pytest.mark.slow

SDK: Any = handlers.client()
TABLE = handlers.ANIMALS
# The attributes that overwrite those of an item; None deletes the item.
DAMAGE: list[Item | None] = [
    None,
    {"name": {"S": "changed"}, "more": {"S": ""}},
    {"createdBy": {"S": "nobody"}, "createdAt": {"N": "1"}},
    {"createdAt": {"N": "9000000000"}},
    {"createdId": {"N": "1"}},
    {"value": {"N": "1"}},
    {"expires": {"N": "9000000000"}},
]


def die(_: Attempt) -> AWSResponse:
    """End the process of an operator."""
    raise SystemExit


FAULTS = [THROTTLED, LOST_RESPONSE, die, after(die)]


def items(table: str = TABLE) -> dict[str, Item]:
    """Read the items of a table by their names, such as `pet 1`."""
    response = handlers.ask("Scan", table)
    return {f"{item['pk']['S']} {item['id']['N']}": item for item in response["Items"]}


def has_animal(record: Item) -> bool:
    """Return whether the animal that was created with an idempotency record exists."""
    animal = items().get(f"pet {record['createdId']['N']}", {})
    created = int(record["expires"]["N"]) - 24 * 60 * 60
    return animal.get("createdAt") == {"N": str(created)}


def describe_table(TableName: str) -> Any:  # noqa: N803 - the SDK's name
    """Describe a copy by the time in its name: the local store cannot."""
    moment = datetime.fromtimestamp(int(TableName.rpartition("-")[2]), UTC)
    source = {"SourceTableArn": f"table/{TABLE}", "RestoreDateTime": moment}
    return {"Table": {"RestoreSummary": source}}


def query(TableName: str, **_: object) -> Any:  # noqa: N803 - the SDK's name
    """Find the animal with the highest id: the local store reads no list backwards."""
    pets = [item for item in items(TableName).values() if item["pk"] == {"S": "pet"}]
    return {"Items": sorted(pets, key=lambda pet: int(pet["id"]["N"]))[-1:]}


def raise_counter(error: DeploymentError) -> None:
    """Run the command that a plan prints, with a condition that the local store knows."""
    command = parse(str(error))
    command["ConditionExpression"] = "attribute_not_exists(#value) OR #value <= :new"
    values = command["ExpressionAttributeValues"]
    command["ExpressionAttributeValues"] = {":new": values[":new"]}
    handlers.ask("UpdateItem", TABLE, **command)


STAGE: Any = SimpleNamespace(
    outputs=lambda: {"AnimalsTableName": TABLE}, client=lambda _: SDK
)


class History:
    """Creations, damage and repairs, and the items that they concern.

    Attributes:
        known: The versions of each item that the service wrote, by the item's name; clients know
            the last.
        damaged: The names of the items whose last version was damaged.
        copies: The name of each copy, and whether the counter was intact when it was made.
        is_counter_intact: Whether no id can be given twice.
        operators: The number of operators at work.
        trouble: The probability that others act before an operator's request, and that it fails.
    """

    def __init__(self, clock: Clock, seed: int) -> None:
        self.clock, self.chance = clock, Random(seed)
        self.known = {name: [item] for name, item in items().items()}
        del self.known["counter 0"]
        self.damaged: set[str] = set()
        self.copies: dict[str, bool] = {}
        self.is_counter_intact = True
        self.operators = 0
        self.trouble = 0.05
        self.copy_table()

    def answer(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse | None:
        """Answer an operator's request."""
        attempt = Attempt(event_name, request)
        if self.chance.random() < self.trouble:
            self.create()
            if self.operators < 3:
                self.repair()
        if self.chance.random() < self.trouble:
            return self.chance.choice(FAULTS)(attempt)
        return attempt.carry_out()

    def copy_table(self) -> None:
        self.clock.advance(10)
        copy_name = f"copy-{self.clock.wall:.0f}"
        self.copies[copy_name] = self.is_counter_intact
        request = handlers.TEMPLATE.tables["AnimalsTable"] | {"TableName": copy_name}
        handlers.ask("CreateTable", copy_name, **request)
        for item in items().values():
            handlers.ask("PutItem", copy_name, Item=item)
        self.clock.advance(10)

    def create(self) -> int:
        """Add an animal, perhaps with a key; remember the new items; return the status."""
        headers = self.chance.choice([{}, {"Idempotency-Key": ["retry"]}])
        before = items()
        response = handlers.send("create-201", headers=headers)
        assert response.status == 201 or self.damaged
        for name, item in items().items():
            if before.get(name) == item or name == "counter 0":
                continue
            is_lost_record = name.startswith("idem") and name in self.damaged
            is_new = name not in self.known or is_lost_record
            assert is_new or not self.is_counter_intact
            self.known.setdefault(name, []).append(item)
            self.damaged.discard(name)
        return response.status

    def damage(self) -> None:
        """Change or delete the items whose names begin alike."""
        start = self.chance.choice(["", "counter", "pet", "pet 2", "idem"])
        attributes = self.chance.choice(DAMAGE)
        for name, item in items().items():
            if not name.startswith(start):
                continue
            self.damaged.add(name)
            self.is_counter_intact &= name != "counter 0"
            if attributes:
                handlers.ask("PutItem", TABLE, Item=item | attributes)
            else:
                key = {"pk": item["pk"], "id": item["id"]}
                handlers.ask("DeleteItem", TABLE, Key=key)

    def repair(self, copy: str = "") -> None:
        """Repair from this copy, or from a random one, as an operator does; an error ends it."""
        copy = copy or self.chance.choice([*self.copies])
        self.operators += 1
        with (
            TemporaryDirectory() as folder,
            chdir(folder),
            suppress(SystemExit, BotoCoreError, ClientError),
        ):
            try:
                plan(STAGE, copy)
            except DeploymentError as error:
                raise_counter(error)
                self.is_counter_intact |= self.copies[copy]
                plan(STAGE, copy)
            for file in Path(copy, "plan.jsonl"), Path(copy, "others.jsonl"):
                self.edit(file)
                with suppress(DeploymentError):  # some items are skipped
                    apply(STAGE, file)
        self.operators -= 1

    def edit(self, file: Path) -> None:
        """Remove the lines whose item was damaged in the copy, or belongs to another client."""
        kept = []
        for text in file.read_text().splitlines(keepends=True):
            line = json.loads(text)
            copied = line["copied"]
            known = self.known[f"{copied['pk']['S']} {copied['id']['N']}"]
            is_theirs = file.stem == "others" and line["current"] in known
            if copied in known and not is_theirs:
                kept.append(text)
        file.write_text("".join(kept))

    def check(self) -> None:
        """Repair from each copy three times; compare the items with those that clients know."""
        self.trouble = 0
        for copy in [*self.copies] * 3:
            self.repair(copy)
        copies = [items(copy) for copy in self.copies]
        for name, known in self.known.items():
            # A repair leaves out a record whose animal is lost, or is another client's.
            if "fingerprint" in known[-1] and not has_animal(known[-1]):
                continue
            is_copied = any(copy.get(name) == known[-1] for copy in copies)
            if is_copied or name not in self.damaged:
                assert items()[name] == known[-1]
        assert self.create() == 201


@pytest.fixture
def history(seed: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[History]:
    # The tables are read one after the other, so that each seed has one history.
    readers = nullcontext(SimpleNamespace(map=map))
    monkeypatch.setattr("ops.restore.ThreadPoolExecutor", lambda _: readers)
    monkeypatch.setattr(SDK, "describe_table", describe_table)
    monkeypatch.setattr(SDK, "query", query)
    STORE.reset()
    history = History(install_clock(monkeypatch), seed)
    SDK.meta.events.register_first("before-send.dynamodb.*", history.answer)
    yield history
    SDK.meta.events.unregister("before-send.dynamodb.*", history.answer)


@pytest.mark.parametrize("seed", range(50))
def test_repairs_restore_each_item_of_a_copy_and_change_no_other(
    history: History,
) -> None:
    actions = [history.create, history.damage, history.copy_table, history.repair]
    for _ in range(12):
        history.chance.choice(actions)()
    history.check()
