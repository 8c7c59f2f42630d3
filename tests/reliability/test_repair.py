"""Random damage, and repairs by operators who overlap, fail, die and repeat."""

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
from tests.support.clock import Clock
from tests.support.fault_injection import (
    LOST_RESPONSE,
    STORE,
    THROTTLED,
    Attempt,
    Fault,
    after,
    die,
)

pytestmark = pytest.mark.slow

SDK: Any = handlers.client()
STAGE: Any = SimpleNamespace(
    outputs=lambda: {"AnimalsTableName": handlers.ANIMALS},
    client=lambda _: SDK,
)
# The attributes that overwrite those of an item; None deletes the item.
DAMAGE: list[Item | None] = [
    None,
    {"name": {"S": "changed"}, "more": {"S": ""}},
    {"createdBy": {"S": "nobody"}, "createdAt": {"N": "1"}},
    {"createdId": {"N": "1"}},
]
FAULTS: list[Fault] = [THROTTLED, LOST_RESPONSE, die, after(die)]


def items() -> dict[str, Item]:
    """Read the animals and the idempotency records by their names, such as `pet 1`."""
    items = handlers.items("pet") + handlers.items("idempotency")
    return {f"{item['pk']['S']} {item['id']['N']}": item for item in items}


class History:
    """Creations, damage and repairs, after the table was copied.

    Attributes:
        expected: The items that a repair must restore or leave as they are, by their names.
        operators: The number of operators at work.
        trouble: The probability that others act before an operator's request, and that it fails.
    """

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.items_in_copy, self.expected = items(), items()
        self.operators = 0
        self.trouble = 0.05

    def answer(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse | None:
        """Answer an operator's request."""
        if self.operators < 3 and self.chance.random() < self.trouble:
            self.create()
            self.repair()
        fault: Fault = Attempt.carry_out
        if self.chance.random() < self.trouble:
            fault = self.chance.choice(FAULTS)
        return fault(Attempt(event_name, request))

    def create(self) -> None:
        """Add an animal, perhaps with a key; expect its items."""
        items_before = items()
        headers = self.chance.choice([{}, {"Idempotency-Key": ["retry"]}])
        response = handlers.send("create-201", headers)
        # 422 and 500: the key's record is damaged. 503: another creation used the key.
        assert response.status in ({201, 422, 500, 503} if headers else {201})
        for name, item in items().items():
            if name not in items_before:
                self.expected[name] = item

    def damage(self) -> None:
        """Change or delete some items."""
        attributes = self.chance.choice(DAMAGE)
        for name, item in items().items():
            if self.chance.random() < 0.5:
                continue
            if self.expected.get(name) != self.items_in_copy.get(name):
                # The item was created after the copy.
                self.expected.pop(name, None)
            if attributes:
                handlers.ask("PutItem", handlers.ANIMALS, Item=item | attributes)
            else:
                key = {"pk": item["pk"], "id": item["id"]}
                handlers.ask("DeleteItem", handlers.ANIMALS, Key=key)

    def repair(self) -> None:
        """Plan and apply as an operator does; an error ends the repair."""
        errors = SystemExit, BotoCoreError, ClientError, DeploymentError
        self.operators += 1
        with TemporaryDirectory() as folder, chdir(folder), suppress(*errors):
            plan(STAGE, "copy")
            apply(STAGE, Path("copy/plan.jsonl"))
        self.operators -= 1


@pytest.fixture
def history(
    seed: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[History]:
    STORE.reset()
    handlers.send("create-201", {"Idempotency-Key": ["retry"]})
    history = History(seed)
    request = handlers.TEMPLATE.tables["AnimalsTable"] | {"TableName": "copy"}
    handlers.ask("CreateTable", "copy", **request)
    for item in handlers.items():
        handlers.ask("PutItem", "copy", Item=item)
    summary = {
        "SourceTableArn": f"table/{handlers.ANIMALS}",
        "RestoreDateTime": datetime.fromtimestamp(clock.wall, UTC),
    }
    clock.advance(10)
    description = {"Table": {"RestoreSummary": summary}}
    # The local store cannot restore a table, or find the highest id.
    monkeypatch.setattr(SDK, "describe_table", lambda **_: description)
    monkeypatch.setattr(SDK, "query", lambda **_: {"Items": []})
    # The items are read one after the other, so that each seed has one history.
    readers = nullcontext(SimpleNamespace(map=map))
    monkeypatch.setattr("ops.restore.ThreadPoolExecutor", lambda _: readers)
    SDK.meta.events.register_first("before-send.dynamodb.*", history.answer)
    yield history
    SDK.meta.events.unregister("before-send.dynamodb.*", history.answer)


@pytest.mark.parametrize("seed", range(50))
def test_repairs_restore_every_copied_item_and_leave_newer_items_unchanged(
    history: History,
) -> None:
    for _ in range(12):
        history.chance.choice([history.create, history.damage, history.repair])()
    history.trouble = 0
    history.repair()

    repaired_items = items()
    assert repaired_items | history.expected == repaired_items
