"""The local store and Amazon's DynamoDB Local get the same random requests, and must give the same responses.

ENGINE_REQUESTS says how many. A failure shows the shortest history of requests that tells the two apart.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Context, Decimal
from itertools import count
from typing import Any, ClassVar

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from hypothesis.strategies import DrawFn, SearchStrategy, sampled_from

from tests.local.dynamodb_local import dynamodb_local
from tools.local.dynamodb import Database
from tools.local.expressions import RESERVED_WORDS

REQUESTS = int(os.environ.get("ENGINE_REQUESTS", "2000"))
STEPS = 50

Call = tuple[str, dict[str, Any]]
"""A method of the client, and its parameters."""


def key_schema(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": role} for name, role in zip(names, ("HASH", "RANGE"), strict=False)]


def types(**attributes: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": type_} for name, type_ in attributes.items()]


ANIMALS, API_KEYS = "Animals@", "ApiKeys@"
BY_STATUS = {"IndexName": "by-status", "KeySchema": key_schema("status", "id"), "Projection": {"ProjectionType": "ALL"}}
TABLES: dict[str, dict[str, Any]] = {
    ANIMALS: {
        "KeySchema": key_schema("pk", "id"),
        "AttributeDefinitions": types(pk="S", id="N", status="S"),
        "GlobalSecondaryIndexes": [BY_STATUS],
    },
    API_KEYS: {"KeySchema": key_schema("hash"), "AttributeDefinitions": types(hash="S")},
}
# Ids differ from one partition to another: DynamoDB does not say how an index orders two animals with the same id.
PETS = ["1", "2", "10", "-3", "-2.5", "9007199254740993", "9007199254740992", "1e20"]
PARTITIONS = {"pet": PETS, "counter": ["0"], "\U0001f415": ["0.5"]}
KEYS: dict[str, list[dict[str, Any]]] = {
    ANIMALS: [{"pk": {"S": pk}, "id": {"N": id_}} for pk, ids in PARTITIONS.items() for id_ in ids],
    API_KEYS: [{"hash": {"S": hash_}} for hash_ in ("a", "b", "c")],
}
WRONG_KEYS: list[dict[str, Any]] = [{"pk": {"S": "pet"}}, {"pk": {"S": ""}, "id": {"N": "1"}}, {"hash": {"S": ""}}]
WRONG_KEYS += [{"pk": {"S": "pet"}, "id": {"S": "1"}}, {"hash": {"N": "1"}}]
LONG_KEY = {"pk": {"S": "p" * 2049}, "id": {"N": "1"}}

NUMBERS = ["0", "1", "-1", "2", "1.0", "01", "1e2", "0.1", "9" * 38, "-9007199254740993", "1e125", "1e-130"]
WRONG_NUMBERS = ["1" * 39, "1e126", "1e-131", "x", "", "Infinity"]
STATUSES = ["available", "pending", "sold"]
STRINGS = ["", "a", "b", "B", "1", "\U0001f415", "\uffff", *STATUSES]
OTHERS: list[Any] = [{"BOOL": True}, {"NULL": True}, {"L": [{"N": "1.0"}, {"M": {"a": {"S": ""}}}]}]
VALUES: dict[str, SearchStrategy[Any]] = {
    ":number": sampled_from(NUMBERS * 20 + WRONG_NUMBERS).map(lambda text: {"N": text}),
    ":string": sampled_from(STRINGS).map(lambda text: {"S": text}),
    ":status": sampled_from(STATUSES * 20 + ["s" * 2049, ""]).map(lambda text: {"S": text}),
    ":other": sampled_from(OTHERS),
    ":pet": st.just({"S": "pet"}),
    ":sold": sampled_from(STATUSES).map(lambda text: {"S": text}),
}
TYPES = {"#name": ":string", "token": ":string", "#value": ":number", "expires": ":number", "flag": ":other"}
PLACEHOLDERS = {"#name": "name", "#value": "value", "#status": "status"}
COMPARATORS = ["=", "<>", "<", "<=", ">", ">="]
WRONG_CONDITIONS = [
    *("", " ", "pk", "attribute_exists(pk", "attribute_exists(pk, id)", "token = :none", "#none = token", "AND"),
    *("((token = pk))", "status = pk", "token == pk", "token = token", "token = pk pk", "pk = id OR", "(pk = id))"),
    *(f"{name} {comparator} :other" for name in TYPES for comparator in COMPARATORS),
]
TESTS = [f"attribute_{exists}({name})" for name in (*TYPES, "pk", "#status") for exists in ("exists", "not_exists")]
TESTS += [f"{name} {comparator} {value}" for name, value in TYPES.items() for comparator in COMPARATORS]
COMBINATIONS = "{} AND {}", "{} OR {}", "NOT ({})", "{} AND NOT {} OR {}"
CONDITIONS = st.builds(
    lambda form, *tests: form.format(*tests),
    sampled_from(["{}", "{}", *COMBINATIONS]),
    *[sampled_from(TESTS * 20 + WRONG_CONDITIONS)] * 3,
)
NUMERIC = ["#value", "expires"]
# DynamoDB Local takes a status that is a number in an update. DynamoDB does not, and neither does the store.
SETS = [f"{name} = {value}" for name, value in TYPES.items()] + ["#status = :status", "#name = token", "token = :other"]
SETS += [f"{name} = if_not_exists({name}, {value})" for name, value in TYPES.items()]
SETS += [f"{name} = if_not_exists(expires, :number) {sign} :number" for name in NUMERIC for sign in "+-"]
CHANGES = [("SET", change) for change in SETS] + [("REMOVE", name) for name in (*TYPES, "#status")]
CHANGES += [("ADD", f"{name} :number") for name in NUMERIC * 3]
WRONG_CHANGES = [("SET", "#value = expires - #value"), ("SET", "#value = :number + flag"), ("ADD", "token :number")]
WRONG_CHANGES += [("SET", "flag = if_not_exists(token, :string) + :number")]


def update(changes: list[tuple[str, str]]) -> str:
    sections = {section: [change for its, change in changes if its == section] for section, _ in changes}
    return " ".join(f"{section} {', '.join(its)}" for section, its in sections.items())


WRONG_UPDATES = [
    *("SET", "SET token", "SET token = :none", "SET status = pk", "REMOVE", "ADD token", "token = pk", "ADD token pk"),
    *("SET token = pk SET expires = pk", "SET token = pk,", "SET token = flag + flag", "SET pk = token", "REMOVE id"),
    *("REMOVE token, token", "SET token = pk REMOVE token", "SET a = none", "ADD token :other", "SET a = :pet - a"),
]
RIGHT_UPDATES = st.lists(
    sampled_from(CHANGES * 5 + WRONG_CHANGES), min_size=1, max_size=3, unique_by=lambda change: change[1].split()[0]
).map(update)
UPDATES = st.integers(0, 19).flatmap(lambda dice: sampled_from(WRONG_UPDATES) if dice == 13 else RIGHT_UPDATES)


@st.composite
def writes(draw: DrawFn, table: str, key: dict[str, Any]) -> Call:
    """Make an action of a transaction."""
    action = draw(sampled_from(["Put", "Put", "Update", "Update", "Delete"]))
    parameters: dict[str, Any] = {"TableName": table, "Key": key}
    if action == "Put":
        kinds = {PLACEHOLDERS.get(name, name): VALUES[kind] for name, kind in {**TYPES, "#status": ":status"}.items()}
        parameters = {"TableName": table, "Item": draw(st.fixed_dictionaries({}, optional=kinds)) | key}
    if action == "Update":
        parameters["UpdateExpression"] = draw(UPDATES)
    if draw(st.booleans()):
        parameters["ConditionExpression"] = draw(CONDITIONS)
        parameters["ReturnValuesOnConditionCheckFailure"] = draw(sampled_from(["ALL_OLD", "NONE"]))
    return action, with_placeholders(draw, parameters)


def with_placeholders(draw: DrawFn, parameters: dict[str, Any]) -> dict[str, Any]:
    """Add what the placeholders in the expressions of a request stand for."""
    used = re.findall(r"[#:]\w+", " ".join(text for name, text in parameters.items() if name.endswith("Expression")))
    names = {name: PLACEHOLDERS[name] for name in used if name in PLACEHOLDERS}
    values = {name: draw(VALUES[name]) for name in dict.fromkeys(used) if name in VALUES}
    both = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
    return parameters | {name: known for name, known in both.items() if known}


@st.composite
def single_writes(draw: DrawFn) -> Call:
    table = draw(sampled_from([ANIMALS, ANIMALS, API_KEYS]))
    action, parameters = draw(writes(table, draw(sampled_from(KEYS[table] * 20 + [*WRONG_KEYS, LONG_KEY]))))
    for_updates = ["ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"] * (9 if action == "Update" else 1)
    wanted = draw(sampled_from(["NONE", "ALL_OLD"] * 9 + for_updates))
    return f"{action.lower()}_item", parameters | {"ReturnValues": wanted}


@st.composite
def transactions(draw: DrawFn) -> Call:
    places = sampled_from([(table, key) for table, keys in KEYS.items() for key in keys])
    actions = [dict([draw(writes(*place))]) for place in draw(st.lists(places, min_size=1, max_size=3, unique_by=str))]
    token = draw(sampled_from([{}, {}, {"ClientRequestToken": "one@"}, {"ClientRequestToken": "two@"}]))
    return "transact_write_items", {"TransactItems": actions} | token


@st.composite
def gets(draw: DrawFn) -> Call:
    table = draw(sampled_from([ANIMALS, API_KEYS]))
    return "get_item", {"TableName": table, "Key": draw(sampled_from(KEYS[table] * 20 + WRONG_KEYS))}


@st.composite
def lists(draw: DrawFn) -> Call:
    """Make a request for a page of a query, or for all pages of a query or a scan."""
    parameters: dict[str, Any] = {"TableName": ANIMALS}
    key, value, index = draw(sampled_from([("pk", ":pet", {}), ("#status", ":sold", {"IndexName": "by-status"})]))
    if draw(st.booleans()):
        parameters["Limit"] = draw(sampled_from([1, 2, 3, 4, 5] * 3 + [0]))
    if not index or not draw(st.integers(0, 9)):
        parameters["ConsistentRead"] = True
    operation = draw(sampled_from(["query", "query", "query_all", "scan_all"]))
    if operation == "scan_all":
        return operation, parameters | index
    usual = [f"{key} = {value}", f"{key} = {value} AND id = :number", f"id > :number AND {key} = {value}"]
    usual += [f"{key} = {value} AND id {comparator} :number" for comparator in COMPARATORS[2:]]
    wrong = ["", key, "id > :number", f"{key} > {value}", f"{key} <> {value}", f"{key} = {value} OR id = :number"]
    wrong += [f"{key} = {value} AND token = :number", f"{key} = :number", f"{key} = {value} AND id = :string"]
    parameters["KeyConditionExpression"] = draw(sampled_from(usual * 6 + wrong))
    if "id <=" in parameters["KeyConditionExpression"]:
        # Not in pages: DynamoDB Local goes on from no key that is equal to this bound, not even from its own.
        parameters.pop("Limit", None)
    elif operation == "query" and draw(st.booleans()):
        start = draw(sampled_from(KEYS[ANIMALS] * 20 + WRONG_KEYS))
        parameters["ExclusiveStartKey"] = start | ({"status": draw(VALUES[":sold"])} if index else {})
    return operation, with_placeholders(draw, parameters | index)


CALLS = single_writes() | single_writes() | transactions() | gets() | lists()


@dataclass
class Engine:
    """A DynamoDB, and tables in it for one history: `@` in a name stands for its number."""

    client: Any
    number: "count[int]" = field(default_factory=count)
    suffix: str = ""

    def start(self) -> None:
        self.suffix = f"-{next(self.number)}"
        for name, table in TABLES.items():
            self.client.create_table(TableName=name.replace("@", self.suffix), BillingMode="PAY_PER_REQUEST", **table)

    def outcome(self, operation: str, parameters: dict[str, Any]) -> Any:
        """Send a request; return the response in a form in which those of two engines can be compared."""
        own = json.loads(json.dumps(parameters).replace("@", self.suffix))
        method, every, _ = operation.partition("_all")
        pages = []
        try:
            while True:
                response = getattr(self.client, method)(**own)
                # DynamoDB Local tells the second one unasked, and only now and then.
                told = response.keys() - {"ResponseMetadata", "ConsumedCapacity"}
                pages.append({name: response[name] for name in told})
                if not (every and "LastEvaluatedKey" in response):
                    break
                own["ExclusiveStartKey"] = response["LastEvaluatedKey"]
        except ClientError as error:
            return _refused(error.response)
        if method == "scan":
            # In which order partitions come is DynamoDB's own affair.
            items = sorted(json.dumps(_plain(item), sort_keys=True) for page in pages for item in page["Items"])
            return [page["Count"] for page in pages], items
        return _plain(pages)


def _refused(error: Any) -> Any:
    code, reasons = error["Error"]["Code"], error.get("CancellationReasons", [])
    # A mistake that DynamoDB Local finds late is the reason of a cancellation, of which the store makes no difference.
    if code == "ValidationException" or "ValidationError" in [reason["Code"] for reason in reasons]:
        return "invalid"
    return code, _plain(reasons), _plain(error.get("Item"))


def _plain(value: Any) -> Any:
    """Write equal numbers alike: DynamoDB Local returns them as they were sent."""
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        if value.keys() == {"N"}:
            return f"{Decimal(value['N']).normalize(Context(prec=99)):f}"
        return {name: _plain(member) for name, member in value.items()}
    return value


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

    @rule(call=CALLS)
    def send(self, call: Call) -> None:
        self.sent.append(call)
        Comparison.requests += 1
        amazons, own = (engine.outcome(*call) for engine in self.engines)
        # Which of two mistakes is reported is open: here, that the token is another transaction's.
        assert own == amazons or (amazons == "invalid" and own[0] == "IdempotentParameterMismatchException")

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        self.send(data.draw(st.sampled_from(self.sent)))


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
    request = {"TableName": API_KEYS, "Key": {"hash": {"S": "a"}}}
    for engine in engines:
        engine.start()
    # DynamoDB Local does not know the two that are left out; DynamoDB's documentation does.
    for word in RESERVED_WORDS - {"CONVERT", "SIZE"} | {"label", "created", "revoked", "pk", "petId"}:
        update = request | {"UpdateExpression": f"REMOVE {word.lower()}"}
        amazons, own = (engine.outcome("update_item", update) for engine in engines)
        assert own == amazons, word
