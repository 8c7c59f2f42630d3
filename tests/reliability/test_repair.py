"""Random damage, and repairs from several copies by operators who overlap, fail, die and repeat."""

import json
import tempfile
from collections import defaultdict
from contextlib import chdir, suppress
from datetime import UTC, datetime
from functools import partial
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import BotoCoreError, ClientError
from hypothesis import strategies as st
from hypothesis.stateful import rule

from ops.restore import Item, apply, plan
from ops.stage import DeploymentError
from tests.reliability.histories import DONE, Histories, Plan, die, run
from tests.support import handlers
from tests.support.aws_cli import parse
from tests.support.fault_injection import LOST_RESPONSE, THROTTLED, Attempt, after

SDK: Any = handlers.client()
TABLE = handlers.ANIMALS
# What is written over attributes of an item; None: it is deleted.
DAMAGE: list[Item | None] = [
    None,
    {"name": {"S": "changed"}, "more": {"S": ""}},
    {"createdBy": {"S": "nobody"}, "createdAt": {"N": "1"}},
    {"createdAt": {"N": "9000000000"}},
    {"createdId": {"N": "1"}},
    {"value": {"N": "1"}},
    {"expires": {"N": "9000000000"}},
]
OTHERS: Plan = [
    methodcaller("create"),
    methodcaller("create", "retry"),
    methodcaller("repair", 0, []),
    methodcaller("repair", 1, []),
]
FAULTS = [THROTTLED, LOST_RESPONSE, die, after(die)]
PLANS = st.lists(st.sampled_from([DONE] * 15 + OTHERS + FAULTS), max_size=30)


def items(table: str = TABLE) -> dict[str, Item]:
    """Read the items of a table by their names, such as `pet 1`."""
    found = handlers.ask("Scan", table)["Items"]
    return {f"{item['pk']['S']} {item['id']['N']}": item for item in found}


def write(item: Item, attributes: Item | None) -> None:
    """Write over attributes of an item; without any, delete it."""
    if attributes:
        handlers.ask("PutItem", TABLE, Item=item | attributes)
    else:
        handlers.ask("DeleteItem", TABLE, Key={"pk": item["pk"], "id": item["id"]})


def has_animal(record: Item) -> bool:
    """Tell whether the animal that was written with a record is there."""
    animal = items().get(f"pet {record['createdId']['N']}", {})
    created = int(record["expires"]["N"]) - 24 * 60 * 60
    return animal.get("createdAt") == {"N": str(created)}


# What the local store lacks.


def describe_table(TableName: str) -> Any:  # noqa: N803 - the SDK's name
    """Describe a copy, which is named after its moment."""
    moment = datetime.fromtimestamp(int(TableName.rpartition("-")[2]), UTC)
    source = {"SourceTableArn": f"table/{TABLE}", "RestoreDateTime": moment}
    return {"Table": {"RestoreSummary": source}}


def batch_get_item(RequestItems: Any, **_: Any) -> Any:  # noqa: N803
    keys = RequestItems[TABLE]["Keys"]
    responses = [
        SDK.get_item(TableName=TABLE, Key=key, ConsistentRead=True) for key in keys
    ]
    there = [response["Item"] for response in responses if "Item" in response]
    return {"Responses": {TABLE: there}, "UnprocessedKeys": {}, "ConsumedCapacity": []}


def query(TableName: str, ExpressionAttributeValues: Any, **_: Any) -> Any:  # noqa: N803
    """Find the last item of a partition."""
    partition = ExpressionAttributeValues[":pk"]
    found = [item for item in items(TableName).values() if item["pk"] == partition]
    return {"Items": found[-1:]}


def raise_counter(error: DeploymentError) -> None:
    """Run the command that a plan prints."""
    command = parse(str(error))
    command["ConditionExpression"] = "attribute_not_exists(#value) OR #value <= :new"
    values = command["ExpressionAttributeValues"]
    command["ExpressionAttributeValues"] = {":new": values[":new"]}
    with suppress(SDK.exceptions.ConditionalCheckFailedException):
        SDK.update_item(**command)


OPERATOR = SimpleNamespace(
    batch_get_item=batch_get_item,
    describe_table=describe_table,
    exceptions=SDK.exceptions,
    get_item=SDK.get_item,
    get_paginator=SDK.get_paginator,
    put_item=SDK.put_item,
    query=query,
)
STAGE: Any = SimpleNamespace(
    stack="stage",
    deployed=lambda: {"AnimalsTableName": TABLE},
    client=lambda _: OPERATOR,
)


class Repairs(Histories):
    """Creations, damage and repairs, and the items that they concern.

    Attributes:
        known: By name, the items that the service wrote; clients know the last.
        damaged: The names of items whose last was damaged.
        copies: By their names, whether no id could be given twice then.
        is_counter_intact: Whether no id can be given twice.
    """

    def __init__(self) -> None:
        super().__init__()
        self.plans.append([])
        self.known = defaultdict[str, list[Item]](list)
        self.damaged: set[str] = set()
        self.copies: dict[str, bool] = {}
        self.is_counter_intact = True
        for item in items().values():
            write(item, None)
        self.create("retry")
        self.create()
        self.copy()
        SDK.meta.events.register_first("before-send.dynamodb.*", self.meet)

    def teardown(self) -> None:
        try:
            self.check()
        finally:
            super().teardown()
            SDK.meta.events.unregister("before-send.dynamodb.*", self.meet)

    def meet(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse | None:
        """Answer an operator, after what comes before the request."""
        item = json.loads(str(request.body, "utf-8")).get("Item", {})  # type: ignore[arg-type]
        assert "fingerprint" not in item or has_animal(item)
        return self.answer(Attempt(event_name, request))

    @rule()
    def copy(self) -> None:
        self.clock.advance(10)
        copy = f"copy-{self.clock.wall:.0f}"
        self.copies[copy] = self.is_counter_intact
        request = handlers.TEMPLATE.tables["AnimalsTable"].request | {"TableName": copy}
        handlers.ask("CreateTable", copy, **request)
        for item in items().values():
            handlers.ask("PutItem", copy, Item=item)
        self.clock.advance(10)

    @rule(key=st.sampled_from(["", "retry"]))
    def create(self, key: str = "") -> None:
        headers = {"Idempotency-Key": [key]} if key else {}
        response = self.perform(
            [], partial(handlers.send, "create-201", headers=headers)
        )
        assert response
        if response.status != 201:
            assert self.damaged
            return
        record = next((name for name in items() if name.startswith("idem")), "")
        if "Idempotency-Replayed" in response.headers:
            assert self.known[record]
            return
        # A counter that was set back may give a repeated request the id of the first one.
        if key and self.is_counter_intact:
            assert not self.known[record] or record in self.damaged
        pet = f"pet {response.body['id']}"
        assert pet not in self.known or not self.is_counter_intact
        for name in [pet, record] if key else [pet]:
            self.known[name].append(items()[name])
            self.damaged.discard(name)

    @rule(
        start=st.sampled_from(["", "counter", "pet", "pet 2", "idem"]),
        attributes=st.sampled_from(DAMAGE),
    )
    def damage(self, start: str, attributes: Item | None) -> None:
        for name, item in items().items():
            if name.startswith(start):
                self.damaged.add(name)
                self.is_counter_intact &= name != "counter 0"
                write(item, attributes)

    @rule(which=st.integers(0, 9), plan=PLANS)
    def repair(self, which: int, plan: Plan) -> None:
        """Let an operator repair from one of the copies, until an error."""
        copies = [*self.copies]
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            self.perform(
                plan, partial(self.plan_and_apply, copies[which % len(copies)])
            )

    def plan_and_apply(self, copy: str) -> None:
        with suppress(BotoCoreError, ClientError):
            try:
                plan(STAGE, copy)
            except DeploymentError as error:
                raise_counter(error)
                self.is_counter_intact |= self.copies[copy]
                plan(STAGE, copy)
            for file in Path(f"{copy}.jsonl"), Path(f"{copy}-others.jsonl"):
                self.edit(file)
                with suppress(DeploymentError):  # some items are left
                    apply(STAGE, file)

    def edit(self, file: Path) -> None:
        """Remove lines of items that were damaged in the copy, or are really another client's."""
        kept = []
        for text in file.read_text().splitlines():
            line = json.loads(text)
            known = self.known[f"{line['was']['pk']['S']} {line['was']['id']['N']}"]
            is_theirs = "others" in file.name and line["found"] in known
            if line["was"] in known and not is_theirs:
                kept.append(text)
        file.write_text("\n".join(kept))

    def check(self) -> None:
        """Repair from each copy until nothing changes, and compare."""
        for which in [*range(len(self.copies))] * 3:
            self.repair(which, [])
        copies = [items(copy) for copy in self.copies]
        for name, known in self.known.items():
            is_copied = any(copy.get(name) == known[-1] for copy in copies)
            # A record is left if its animal is lost, or another client has the id.
            if "fingerprint" in known[-1] and not has_animal(known[-1]):
                continue
            if is_copied or name not in self.damaged:
                assert items()[name] == known[-1]
        self.damaged.clear()
        self.create()


def test_repairs_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run(Repairs, monkeypatch, examples=200)
