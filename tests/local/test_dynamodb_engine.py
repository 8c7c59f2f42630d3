"""The local store and Amazon's DynamoDB Local get the same random requests, and must give the same responses.

ENGINE_REQUESTS says how many. A failure shows the shortest history of requests that tells the two apart.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from hypothesis.strategies import DrawFn, sampled_from

from tests.functions import TEMPLATE
from tests.local.dynamodb_local import dynamodb_local
from tools.local.dynamodb import Database
from tools.local.expressions import RESERVED_WORDS
from tools.local.tables import table_request

REQUESTS = int(os.environ.get("ENGINE_REQUESTS", "2000"))
STEPS = 50

Call = tuple[str, dict[str, Any]]
"""A method of the client, and its parameters."""

ANIMALS, API_KEYS = "AnimalsTable@", "ApiKeysTable@"
# Ids differ from one partition to another: DynamoDB does not say how an index orders two animals with the same id.
PARTITIONS = {
    "pet": "1 2 10 -3 -25 -30 9007199254740993 9007199254740992 1" + "0" * 20,
    "counter": "0",
    "\U0001f415": "5",
}
KEYS: dict[str, list[dict[str, Any]]] = {
    ANIMALS: [{"pk": {"S": pk}, "id": {"N": id_}} for pk, ids in PARTITIONS.items() for id_ in ids.split()],
    API_KEYS: [{"hash": {"S": hash_}} for hash_ in ("a", "b", "c")],
}
WRONG_KEYS: list[dict[str, Any]] = [{"pk": {"S": "pet"}}, {"pk": {"S": ""}, "id": {"N": "1"}}, {"hash": {"S": ""}}]
WRONG_KEYS += [
    {"pk": {"S": "pet"}, "id": {"S": "1"}},
    {"hash": {"N": "1"}},
    {"pk": {"S": "p" * 2049}, "id": {"N": "1"}},
]

STATUSES = ["available", "pending", "sold"]
VALUES = {
    ":number": sampled_from(["0", "1", "-1", "2", "10", "-9", "-10", "100", "-9007199254740993", "9" * 20]),
    ":string": sampled_from(["", "a", "b", "B", "1", "\U0001f415", "\uffff", *STATUSES]),
    ":status": sampled_from(STATUSES * 20 + ["s" * 2049, ""]),
    ":sold": sampled_from(STATUSES),
    ":pet": st.just("pet"),
}
NAMES = {"#name": "name", "#value": "value", "#status": "status"}
TYPES = {"#name": ":string", "token": ":string", "#value": ":number", "expires": ":number", "#status": ":status"}

TESTS = [f"attribute_{exists}({name})" for name in (*TYPES, "pk", "id") for exists in ("exists", "not_exists")]
TESTS += [f"{name} {comparator} {value}" for name, value in TYPES.items() for comparator in ("=", "<", "<=", ">", ">=")]
TESTS += ["expires > :string", "token <= :number"]
WRONG_TESTS = [
    *("", " ", "pk", "attribute_exists(pk", "attribute_exists(pk, id)", "token = :none", "#none = :string", "OR"),
    *("status = :status", "token == :string", "token = :string pk", "token = :string OR", "attribute_exists(:string)"),
]
CONDITIONS = st.lists(sampled_from(TESTS * 10 + WRONG_TESTS), min_size=1, max_size=3).map(" OR ".join)

SETS = [f"{name} = {value}" for name, value in TYPES.items()]
SETS += [f"{name} = if_not_exists({other}, {TYPES[name]})" for name in TYPES for other in (name, "token", "#value")]
SETS += ["#name = if_not_exists (pk , :string)"]
ADDS = ["#value :number", "expires :number"]
WRONG_UPDATES = [
    *("", "SET", "SET token", "SET token = :none", "SET status = :status", "ADD token", "token = :string", "ADD"),
    *("SET token = :string, token = :string", "SET token = :string,", "SET pk = :string", "SET id = :number"),
    *("ADD token :string", "SET token = :string SET expires = :number", "SET token = if_not_exists(token, :string"),
]


def changes(forms: list[str]) -> st.SearchStrategy[str]:
    return st.lists(sampled_from(forms), min_size=1, max_size=3, unique_by=lambda form: form.split()[0]).map(", ".join)


RIGHT_UPDATES = changes(SETS).map("SET {}".format) | changes(ADDS).map("ADD {}".format)
UPDATES = st.integers(0, 19).flatmap(lambda dice: sampled_from(WRONG_UPDATES) if dice == 13 else RIGHT_UPDATES)


def with_placeholders(draw: DrawFn, parameters: dict[str, Any]) -> dict[str, Any]:
    """Add what the placeholders in the expressions of a request stand for, and now and then one that is not there."""
    used = re.findall(r"[#:]\w+", " ".join(text for name, text in parameters.items() if name.endswith("Expression")))
    used += [":pet"] if used and not draw(st.integers(0, 29)) else []
    names = {name: NAMES[name] for name in used if name in NAMES}
    values = {name: value(draw, name) for name in dict.fromkeys(used) if name in VALUES}
    both = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
    return parameters | {name: known for name, known in both.items() if known}


def value(draw: DrawFn, placeholder: str) -> dict[str, str]:
    return {"N" if placeholder == ":number" else "S": draw(VALUES[placeholder])}


@st.composite
def writes(draw: DrawFn, table: str, key: dict[str, Any], operation: str) -> dict[str, Any]:
    """Make the parameters of a PutItem or an UpdateItem."""
    parameters: dict[str, Any] = {"TableName": table}
    if operation == "put_item":
        chosen = draw(st.lists(sampled_from([*TYPES]), unique=True))
        parameters["Item"] = {NAMES.get(name, name): value(draw, TYPES[name]) for name in chosen} | key
    else:
        parameters |= {"Key": key, "ReturnValues": draw(sampled_from(["NONE", "ALL_NEW", "UPDATED_NEW"]))}
        parameters["UpdateExpression"] = draw(UPDATES)
    if draw(st.booleans()):
        parameters["ConditionExpression"] = draw(CONDITIONS)
        parameters["ReturnValuesOnConditionCheckFailure"] = draw(sampled_from(["ALL_OLD", "NONE"]))
    return with_placeholders(draw, parameters)


@st.composite
def single_calls(draw: DrawFn) -> Call:
    operation, table = draw(sampled_from(["put_item", "update_item", "get_item"])), draw(sampled_from([*KEYS]))
    key = draw(sampled_from(KEYS[table] * 10 + WRONG_KEYS))
    return operation, {"TableName": table, "Key": key} if operation == "get_item" else draw(
        writes(table, key, operation)
    )


@st.composite
def transactions(draw: DrawFn) -> Call:
    places = sampled_from([(table, key) for table, keys in KEYS.items() for key in keys])
    chosen = draw(st.lists(places, min_size=1, max_size=3, unique_by=None if draw(st.integers(0, 9)) == 7 else str))
    puts = [{"Put": draw(writes(*place, "put_item"))} for place in chosen]
    token = draw(sampled_from([{}, {}, {"ClientRequestToken": "one@"}, {"ClientRequestToken": "two@"}]))
    return "transact_write_items", {"TransactItems": puts} | token


@st.composite
def lists(draw: DrawFn) -> Call:
    """Make a request for a page of a query, or for all pages of a query or a scan."""
    parameters: dict[str, Any] = {"TableName": ANIMALS} | draw(sampled_from([{}, {"Limit": 1}, {"Limit": 3}]))
    operation = draw(sampled_from(["query", "query", "query_all", "scan_all"]))
    if operation == "scan_all":
        return operation, parameters
    key, wanted, index = draw(sampled_from([("pk", ":pet", {}), ("#status", ":sold", {"IndexName": "by-status"})]))
    if not index or not draw(st.integers(0, 9)):
        parameters["ConsistentRead"] = True
    usual = [f"{key} = {wanted}", f"{key} = {wanted} AND id > :number", f"id > :number AND {key} = {wanted}"]
    wrong = ["", key, "id > :number", f"{key} > {wanted}", f"{key} = {wanted} OR id > :number", f"{key} = :number"]
    wrong += [
        f"{key} = {wanted} AND token > :number",
        f"{usual[1]} AND id > :number",
        f"{key} = {wanted} AND id > :string",
    ]
    parameters["KeyConditionExpression"] = draw(sampled_from(usual * 6 + wrong))
    if operation == "query" and draw(st.booleans()):
        start = draw(sampled_from(KEYS[ANIMALS] * 10 + WRONG_KEYS))
        parameters["ExclusiveStartKey"] = start | ({"status": value(draw, ":sold")} if index else {})
    return operation, with_placeholders(draw, parameters | index)


@dataclass
class Engine:
    """A DynamoDB, and tables in it for one history: `@` in a name stands for its number."""

    client: Any
    numbers: "count[int]" = field(default_factory=count)
    suffix: str = ""

    def start(self) -> None:
        self.suffix = f"-{next(self.numbers)}"
        for name, table in TEMPLATE.tables.items():
            self.client.create_table(**table_request(table) | {"TableName": f"{name}{self.suffix}"})

    def outcome(self, operation: str, parameters: dict[str, Any]) -> Any:
        """Send a request; return what is to be compared of its response, or of those of all its pages."""
        own = json.loads(json.dumps(parameters).replace("@", self.suffix))
        method, every, _ = operation.partition("_all")
        pages = []
        try:
            while True:
                response = getattr(self.client, method)(**own)
                # DynamoDB Local tells the second one unasked, and only now and then.
                pages.append(
                    {name: response[name] for name in response.keys() - {"ResponseMetadata", "ConsumedCapacity"}}
                )
                if not (every and "LastEvaluatedKey" in response):
                    break
                own["ExclusiveStartKey"] = response["LastEvaluatedKey"]
        except ClientError as error:
            return refused(error.response)
        if method == "scan":
            # In which order partitions come is DynamoDB's own affair.
            items = sorted(json.dumps(item, sort_keys=True) for page in pages for item in page["Items"])
            return [page["Count"] for page in pages], items
        return pages


def refused(error: Any) -> Any:
    code, reasons = error["Error"]["Code"], error.get("CancellationReasons", [])
    # A mistake that DynamoDB Local finds late is the reason of a cancellation, of which the store makes no difference.
    if code == "ValidationException" or "ValidationError" in [reason["Code"] for reason in reasons]:
        return "invalid"
    return code, reasons, error.get("Item")


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Engine]]:
    access: Any = {"region_name": "eu-central-1", "aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    with dynamodb_local() as url:
        amazons = boto3.client("dynamodb", endpoint_url=url, config=config, **access)
        own = boto3.client("dynamodb", config=config, **access)
        database = Database(tmp_path_factory.mktemp("store") / "store.sqlite")
        database.attach(own)
        yield Engine(amazons), Engine(own)
        database.close()


class Comparison(RuleBasedStateMachine):
    """Sends the same requests to both engines."""

    engines: ClassVar[tuple[Engine, Engine]]
    requests: ClassVar = 0

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Call] = []
        for engine in self.engines:
            engine.start()

    @rule(call=single_calls() | single_calls() | transactions() | lists())
    def send(self, call: Call) -> None:
        self.sent.append(call)
        Comparison.requests += 1
        amazons, own = (engine.outcome(*call) for engine in self.engines)
        # Which of two mistakes is reported is open: here, that the token is another transaction's.
        assert own == amazons or (amazons == "invalid" and own[0] == "IdempotentParameterMismatchException")

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        self.send(data.draw(sampled_from(self.sent)))


def test_random_histories(engines: tuple[Engine, Engine]) -> None:
    Comparison.engines, Comparison.requests = engines, 0
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    while (missing := REQUESTS - Comparison.requests) > 0:
        histories = settings(
            max_examples=missing // STEPS + 1, stateful_step_count=STEPS, deadline=None, suppress_health_check=checks
        )
        run_state_machine_as_test(Comparison, settings=histories)
    print(f"{Comparison.requests} requests, the same responses")


def test_reserved_words(engines: tuple[Engine, Engine]) -> None:
    for engine in engines:
        engine.start()
    # DynamoDB Local does not know the two that are left out; DynamoDB's documentation does.
    for word in RESERVED_WORDS - {"CONVERT", "SIZE"} | {"label", "created", "revoked", "pk", "petId"}:
        update = {"UpdateExpression": f"ADD {word.lower()} :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
        request = {"TableName": API_KEYS, "Key": KEYS[API_KEYS][0], **update}
        amazons, own = (engine.outcome("update_item", request) for engine in engines)
        assert own == amazons, word
