"""The local store must answer random requests as Amazon's DynamoDB Local does.

SEED repeats those of a run that failed. DYNAMODB_LOCAL names the folder of
DynamoDBLocal.jar; without it or Java the test is skipped.
"""

import os
import re
import shutil
import time
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError
from botocore.session import Session
from lambda_local import dynamodb_local
from lambda_local.dynamodb import Database

pytestmark = pytest.mark.slow
ENGINE = Path(
    os.environ.get("DYNAMODB_LOCAL")
    or Path(__file__).parents[3]
    / ".tools/dynamodb-local/node_modules/amplify-dynamodb-simulator/emulator"
)
TABLE: Any = yaml.safe_load(Path(__file__).with_name("notes.yaml").read_text("utf-8"))
SEED = int(os.environ.get("SEED", time.time()))
Request = dict[str, Any]
# Each list is what one part of a request is chosen from; the last ones are rare.
INTEGERS = [0, 1, -1, 2, 10, -3, -25, -30, 2**53, 2**53 + 1, 10**20]
NUMBERS: list[Any] = [{"N": str(number)} for number in INTEGERS]
STRINGS: list[Any] = [{"S": text} for text in ("", "a", "b", "B", "1", "🐕", "\uffff")]
STATUSES = [STRINGS[1], STRINGS[2]] * 20 + [STRINGS[0]]
OTHERS: list[Any] = [
    {"BOOL": True},
    {"NULL": True},
    {"L": []},
    {"M": {"a": {"BOOL": False}, "b": {"L": [{"N": "1"}, {"M": {}}]}}},
]
NOTE: Any = {"pk": {"S": "note"}}
# Ids differ from one partition to another: how an index orders equal ids is not specified.
KEYS = [NOTE | {"id": number} for number in NUMBERS] * 5 + [
    NOTE,
    NOTE | {"id": {"S": "1"}},
    {"pk": {"S": "\uffff"}, "id": {"N": "5"}},
    {"pk": {"S": ""}, "id": {"N": "1"}},
    {"pk": {"S": "p" * 2049}, "id": {"N": "1"}},
]
ATTRIBUTES = {
    "name": STRINGS,
    "token": STRINGS,
    "value": NUMBERS + OTHERS,
    "status": STATUSES,
}
VALUES = {
    ":string": STRINGS,
    ":number": NUMBERS,
    ":status": STATUSES,
    ":note": [NOTE["pk"]],
    ":other": OTHERS,
}
CONDITIONS = [
    "attribute_exists(pk)",
    "attribute_not_exists(pk)",
    "attribute_not_exists(token)",
    "#name = :string",
    "#value < :number",
    "#value <= :number",
    "token > :string OR attribute_exists(#value)",
    "#name = :string AND attribute_not_exists(token)",
    "#name = :string AND #value = :number OR #status = :status",
    "#status = :status OR token >= :string OR #value = :number",
    "token <= :number",
    "#value = :other",
    "#value < :other",
    "attribute_exists(pk",
    "token = :none",
    "status = :string",
    "",
]
UPDATES = [
    "SET #name = :string, #value = :number",
    "SET #status = :status, token = :string",
    "SET #name = if_not_exists(token, :string), token = :string",
    "SET #value = if_not_exists(#value, :number), #status = :status",
    "ADD #value :number",
    "ADD #value :other",
    "SET #value = :other",
    "ADD token :number",
    "SET pk = :string",
    "SET token = :string, token = :string",
    "SET token",
    "SET",
]
QUERIES = [
    "pk = :note",
    "pk = :note AND id > :number",
    "id > :number AND pk = :note",
    "#status = :status",
    "#status = :status AND id > :number",
    "pk = :note OR id > :number",
    "pk > :note",
    "id > :number",
    "pk = :number",
    "pk = :note AND token > :string",
]
IF = {
    "ConditionExpression": CONDITIONS,
    "ReturnValuesOnConditionCheckFailure": ["ALL_OLD"],
}
PAGE = {
    "IndexName": ["by-status"],
    "Limit": [1, 2, 3],
    "ScanIndexForward": [False],
    "ConsistentRead": [True],
    "ExclusiveStartKey": KEYS + [key | {"status": STATUSES[0]} for key in KEYS],
}
# What each method needs, and what it may have.
PARAMETERS: dict[str, tuple[Request, Request]] = {
    "put_item": ({"Item": KEYS}, IF),
    "update_item": ({"Key": KEYS, "UpdateExpression": UPDATES}, IF),
    "delete_item": ({"Key": KEYS}, IF),
    "get_item": ({"Key": KEYS}, {}),
    "query": ({"KeyConditionExpression": QUERIES}, PAGE),
    "scan": ({}, {}),
}
WRITES = {"put_item": "Put", "update_item": "Update", "delete_item": "Delete"}


def some(random: Random, choices: Request, share: float = 0.5) -> Request:
    """Choose a share of the members, and a value for each."""
    names = [name for name in choices if random.random() < share]
    return {name: random.choice(choices[name]) for name in names}


def parameters(random: Random, method: str) -> Request:
    """Make parameters, with the names and values that their expressions use."""
    required, optional = PARAMETERS[method]
    made = some(random, optional) | some(random, required, share=1)
    made["TableName"] = "Notes"
    if method == "put_item":
        made["Item"] = some(random, ATTRIBUTES) | made["Item"]
    used = set(re.findall(r"[#:]\w+", str(made)))
    if names := {name: name[1:] for name in used if name.startswith("#")}:
        made["ExpressionAttributeNames"] = names
    if values := {name: random.choice(VALUES[name]) for name in used & VALUES.keys()}:
        made["ExpressionAttributeValues"] = values
    return made


def request(random: Random) -> tuple[str, Request]:
    """Make a method of the client, and its parameters."""
    method = random.choice([*PARAMETERS, "transact_write_items"])
    if method in PARAMETERS:
        return method, parameters(random, method)
    actions = {}
    for write in random.choices([*WRITES], k=random.randint(1, 3)):
        made = parameters(random, write)
        key = made.get("Key") or made["Item"]
        # No item twice: DynamoDB Local notices that only where no condition fails before.
        actions[str((key["pk"], key.get("id")))] = {WRITES[write]: made}
    token = f"{SEED}-{random.randint(1, 100)}"
    return method, {"TransactItems": [*actions.values()], "ClientRequestToken": token}


def outcome(engine: Any, method: str, parameters: Request) -> Any:
    """Send a request; return what is to be compared of the response."""
    try:
        response = getattr(engine, method)(**parameters)
    except ClientError as error:
        answer: Any = error.response
        code, reasons = answer["Error"]["Code"], answer.get("CancellationReasons", [])
        # DynamoDB Local finds some mistakes late, as a reason of a cancellation.
        if "Validation" in f"{code} {reasons}":
            return "invalid"
        # DynamoDB Local has two messages for one reason.
        codes = [(reason["Code"], reason.get("Item")) for reason in reasons]
        return code, codes, answer.get("Item")
    if method == "scan":  # in which order partitions come is DynamoDB's own affair
        response["Items"].sort(key=lambda item: (item["pk"]["S"], item["id"]["N"]))
    del response["ResponseMetadata"]
    # DynamoDB Local tells it unasked, and only now and then.
    response.pop("ConsumedCapacity", None)
    return response


def test_random_requests(tmp_path: Path) -> None:
    if not (shutil.which("java") and ENGINE.exists()):
        pytest.skip("no Java, or no DynamoDB Local")
    random = Random(SEED)
    requests = [request(random) for _ in range(1700)]
    with (
        dynamodb_local.serve(ENGINE) as url,
        closing(Database(tmp_path / "store")) as database,
    ):
        engines: list[Any] = [
            Session().create_client(
                "dynamodb",
                "us-east-1",
                endpoint_url=url,
                aws_access_key_id="none",
                aws_secret_access_key="none",
            )
            for _ in range(2)
        ]
        database.attach(engines[1])
        for engine in engines:
            engine.create_table(TableName="Notes", **TABLE)
        for method, made in [*requests, *requests[::5]]:
            expected, own = (outcome(engine, method, made) for engine in engines)
            # Of two mistakes either may be reported.
            is_either = expected == "invalid" and "Mismatch" in own[0]
            assert own == expected or is_either, f"{SEED=} {method} {made}"
