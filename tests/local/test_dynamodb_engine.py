"""The local store and Amazon's DynamoDB Local get the same random requests, and must give the same responses.

ENGINE_CALLS is the number of requests. A failure shows the shortest history of requests that tells the two apart.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any, ClassVar

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.local.dynamodb_local import dynamodb_local
from tools.local.dynamodb import Database
from tools.local.expressions import RESERVED_WORDS

NUMBER = int(os.environ.get("ENGINE_CALLS", "2000"))
STEPS = 50

Call = tuple[str, dict[str, Any]]
"""A method of the client, and its parameters."""

TABLES: dict[str, dict[str, Any]] = {
    "Animals": {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "id", "KeyType": "RANGE"}],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in {"pk": "S", "id": "N", "status": "S"}.items()
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by-status",
                "KeySchema": [
                    {"AttributeName": "status", "KeyType": "HASH"},
                    {"AttributeName": "id", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    },
    "Keys": {
        "KeySchema": [{"AttributeName": "hash", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "hash", "AttributeType": "S"}],
    },
}
# Ids differ from one partition to another: DynamoDB does not say how an index orders two animals with one id.
IDS = ["1", "2", "10", "-3", "-2.5", "9007199254740993", "9007199254740992", "1e20"]
KEYS: dict[str, list[dict[str, Any]]] = {
    "Animals": [
        *({"pk": {"S": "pet"}, "id": {"N": id_}} for id_ in IDS),
        {"pk": {"S": "counter"}, "id": {"N": "0"}},
        {"pk": {"S": "\U0001f415"}, "id": {"N": "0.5"}},
    ],
    "Keys": [{"hash": {"S": "a"}}, {"hash": {"S": "b"}}],
}


def rarely(usual: SearchStrategy[Any], strange: SearchStrategy[Any]) -> SearchStrategy[Any]:
    # Numbers that Hypothesis has no liking for.
    return st.integers(0, 99).flatmap(lambda dice: strange if dice in (37, 59, 83) else usual)


def of_kind(kind: str, *values: Any) -> SearchStrategy[Any]:
    return st.sampled_from([{kind: value} for value in values])


WRONG_KEYS: SearchStrategy[Any] = st.sampled_from(
    [
        {"pk": {"S": "pet"}},
        {"pk": {"S": "pet"}, "id": {"S": "1"}},
        {"pk": {"S": ""}, "id": {"N": "1"}},
        {"pk": {"S": "p" * 2049}, "id": {"N": "1"}},
        {"pk": {"S": "pet"}, "id": {"N": "one"}},
        {"hash": {"S": ""}},
        {"hash": {"N": "1"}},
    ]
)
NUMBERS = of_kind("N", "0", "1", "-1", "2", "1.0", "01", "1e2", "0.1", "9" * 38, "-9007199254740993", "1e125", "1e-130")
WRONG_NUMBERS = of_kind("N", "1" * 39, "1e126", "1e-131", "x", "", "Infinity")
STATUSES = of_kind("S", "available", "pending", "sold")
WRONG_STATUSES = of_kind("S", "", "s" * 2049) | of_kind("N", "1")
STRINGS = of_kind("S", "", "a", "b", "sold", "1", "B", "\U0001f415", "\uffff")
OTHERS = of_kind("BOOL", True, False) | of_kind("NULL", True) | of_kind("L", [{"N": "1.0"}, {"M": {"a": {"S": ""}}}])
VALUES = {"name": STRINGS, "token": STRINGS, "value": NUMBERS, "expires": NUMBERS, "flag": OTHERS}
ANY_VALUE = NUMBERS | STRINGS | OTHERS
WRONG_CONDITIONS = st.sampled_from(
    [
        *("", " ", "pk", "attribute_exists(pk", "attribute_exists(pk, id)", "token = :none", "#none = token", "AND"),
        *("((token = pk))", "status = pk", "token == pk", "token = token", "token = pk pk", "pk = id OR", "(pk = id))"),
    ]
)
WRONG_UPDATES = st.sampled_from(
    [
        *("", "SET", "SET token", "SET token = :none", "SET status = pk", "REMOVE", "ADD token", "token = pk"),
        *("SET token = pk SET expires = pk", "SET token = pk,", "SET token = flag + flag", "SET pk = token"),
        *("REMOVE id", "REMOVE token, token", "SET token = pk REMOVE token", "ADD token pk", "SET token = none"),
    ]
)


@dataclass
class Words:
    """Writes attributes and values into expressions, and keeps what their placeholders stand for."""

    draw: DrawFn
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        both = {"ExpressionAttributeNames": self.names, "ExpressionAttributeValues": self.values}
        return {name: known for name, known in both.items() if known}

    def name(self, attribute: str) -> str:
        if attribute.upper() not in RESERVED_WORDS and self.draw(st.booleans()):
            return attribute
        self.names[f"#{attribute}"] = attribute
        return f"#{attribute}"

    def value(self, values: SearchStrategy[Any]) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = self.draw(values)
        return placeholder

    def condition(self, depth: int = 2) -> str:
        """Write a condition, without parentheses where the order of precedence makes them needless."""
        match self.draw(st.integers(0, 6 if depth else 3)):
            case 0 | 1 as exists:
                name = self.name(self.draw(st.sampled_from([*VALUES, "pk", "status"])))
                return f"attribute_exists({name})" if exists else f"attribute_not_exists({name})"
            case 2 | 3:
                attribute = self.draw(st.sampled_from([*VALUES, "id", "status"]))
                comparator = self.draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
                value = self.value(rarely({"id": NUMBERS, "status": STATUSES, **VALUES}[attribute], ANY_VALUE))
                return f"{self.name(attribute)} {comparator} {value}"
            case 4:
                return f"{self.condition(depth - 1)} AND {self.condition(depth - 1)}"
            case 5:
                return f"{self.condition(depth - 1)} OR {self.condition(depth - 1)}"
        return f"NOT ({self.condition(depth - 1)})"

    def update(self) -> str:
        """Write an update, each attribute once."""
        sections: dict[str, list[str]] = {}
        for attribute in self.draw(st.lists(st.sampled_from([*VALUES, "status"]), min_size=1, max_size=3, unique=True)):
            section, change = self.change(attribute)
            sections.setdefault(section, []).append(change)
        return " ".join(f"{section} {', '.join(changes)}" for section, changes in sections.items())

    def change(self, attribute: str) -> tuple[str, str]:
        name = self.name(attribute)
        # DynamoDB Local takes a status that is a number here. DynamoDB does not, and neither does the store.
        values = STATUSES if attribute == "status" else rarely(VALUES[attribute], ANY_VALUE)
        match self.draw(st.integers(0, 6)):
            case 0 | 1:
                return "SET", f"{name} = {self.value(values)}"
            case 2:
                return "SET", f"{name} = if_not_exists({name}, {self.value(values)})"
            case 3 | 4 as plus if attribute in ("value", "expires"):
                left = f"if_not_exists({self.name('value')}, {self.value(values)})"
                return "SET", f"{name} = {left} {'+' if plus == 3 else '-'} {self.value(values)}"
            case 5 if attribute in ("value", "expires"):
                return "ADD", f"{name} {self.value(values)}"
            case 4 if attribute == "name":
                return "SET", f"{name} = {self.name('token')}"
        return "REMOVE", name


@st.composite
def writes(draw: DrawFn, table: str, key: dict[str, Any]) -> Call:
    """Make an action of a transaction."""
    action = draw(st.sampled_from(["Put", "Put", "Update", "Update", "Delete"]))
    words = Words(draw)
    parameters: dict[str, Any] = {"TableName": table}
    if action == "Put":
        item = draw(
            st.fixed_dictionaries({}, optional={name: rarely(usual, WRONG_NUMBERS) for name, usual in VALUES.items()})
        )
        if table == "Animals" and draw(st.booleans()):
            item["status"] = draw(rarely(STATUSES, WRONG_STATUSES))
        parameters["Item"] = item | key
    else:
        parameters["Key"] = key
    if action == "Update":
        parameters["UpdateExpression"] = draw(rarely(st.just(words.update()), WRONG_UPDATES))
    if draw(st.booleans()):
        parameters["ConditionExpression"] = draw(rarely(st.just(words.condition()), WRONG_CONDITIONS))
        parameters["ReturnValuesOnConditionCheckFailure"] = draw(st.sampled_from(["ALL_OLD", "NONE"]))
    return action, parameters | words.parameters()


@st.composite
def single_writes(draw: DrawFn) -> Call:
    table = draw(st.sampled_from(["Animals", "Animals", "Keys"]))
    action, parameters = draw(writes(table, draw(rarely(st.sampled_from(KEYS[table]), WRONG_KEYS))))
    wanted = ["NONE", "ALL_OLD"] + ["ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"] * (action == "Update")
    wanted = draw(rarely(st.sampled_from(wanted), st.sampled_from(["ALL_NEW", "ALL"])))
    return f"{action.lower()}_item", parameters | {"ReturnValues": wanted}


@st.composite
def transactions(draw: DrawFn) -> Call:
    places = st.sampled_from([(table, key) for table, keys in KEYS.items() for key in keys])
    actions = [dict([draw(writes(*place))]) for place in draw(st.lists(places, min_size=1, max_size=3, unique_by=str))]
    token = draw(st.sampled_from([{}, {}, {"ClientRequestToken": "one"}, {"ClientRequestToken": "two"}]))
    return "transact_write_items", {"TransactItems": actions} | token


@st.composite
def gets(draw: DrawFn) -> Call:
    table = draw(st.sampled_from(["Animals", "Keys"]))
    parameters = {"TableName": table, "Key": draw(rarely(st.sampled_from(KEYS[table]), WRONG_KEYS))}
    return "get_item", parameters | {"ConsistentRead": draw(st.booleans())}


@st.composite
def lists(draw: DrawFn) -> Call:
    """Make a request for a page of a query, or for all pages of a query or a scan."""
    words = Words(draw)
    parameters: dict[str, Any] = {"TableName": "Animals"}
    hash_, values = draw(st.sampled_from([("pk", of_kind("S", "pet")), ("status", STATUSES)]))
    if hash_ == "status":
        parameters["IndexName"] = draw(rarely(st.just("by-status"), st.just("none")))
    if draw(st.booleans()):
        parameters["Limit"] = draw(rarely(st.integers(1, 5), st.just(0)))
    if draw(rarely(st.just(False), st.just(True))):
        parameters["ConsistentRead"] = True
    operation = draw(st.sampled_from(["query", "query", "query_all", "scan_all"]))
    if operation == "scan_all":
        return operation, parameters
    conditions = [f"{words.name(hash_)} = {words.value(rarely(values, ANY_VALUE))}"]
    if draw(st.booleans()):
        comparator = draw(st.sampled_from(["=", "<", "<=", ">", ">="]))
        conditions.append(f"{words.name('id')} {comparator} {words.value(rarely(NUMBERS, ANY_VALUE))}")
    if draw(st.booleans()):
        conditions.reverse()
    if operation == "query" and draw(st.booleans()):
        status = {"status": draw(STATUSES)} if hash_ == "status" else {}
        parameters["ExclusiveStartKey"] = draw(rarely(st.sampled_from(KEYS["Animals"]), WRONG_KEYS)) | status
    usual = " AND ".join(conditions)
    wrong = [
        "",
        "pk",
        "id > :v0",
        "pk > :v0",
        "pk = :v0 OR pk = :v0",
        "pk <> :v0",
        "#no = :v0",
        f"{usual} AND token = :v0",
    ]
    parameters["KeyConditionExpression"] = draw(rarely(st.just(usual), st.sampled_from(wrong)))
    return operation, parameters | words.parameters()


CALLS = single_writes() | single_writes() | transactions() | gets() | lists()


@dataclass
class Engine:
    """A DynamoDB, and tables in it that nobody else has."""

    client: Any
    number: "count[int]" = field(default_factory=count)
    suffix: str = ""

    def start(self) -> None:
        """Make new, empty tables."""
        self.suffix = f"-{next(self.number)}"
        for name, definition in TABLES.items():
            self.client.create_table(TableName=name + self.suffix, BillingMode="PAY_PER_REQUEST", **definition)

    def outcome(self, operation: str, parameters: dict[str, Any]) -> Any:
        """Send a request; return the response in a form in which those of two engines can be compared."""
        own = {
            name: value + self.suffix if name in ("TableName", "ClientRequestToken") else value
            for name, value in parameters.items()
        }
        if "TransactItems" in own:
            own["TransactItems"] = [
                {action: write | {"TableName": write["TableName"] + self.suffix} for action, write in item.items()}
                for item in own["TransactItems"]
            ]
        method, every, _ = operation.partition("_all")
        pages = []
        try:
            while True:
                response = getattr(self.client, method)(**own)
                pages.append(
                    {
                        name: value
                        for name, value in response.items()
                        if name not in ("ResponseMetadata", "ConsumedCapacity")
                    }
                )
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
            return f"{Decimal(value['N']).normalize():f}"
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

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Call] = []
        for engine in self.engines:
            engine.start()

    @rule(call=CALLS)
    def send(self, call: Call) -> None:
        self.sent.append(call)
        amazons, own = (engine.outcome(*call) for engine in self.engines)
        # Which of two mistakes is reported is open: here, that the token is another transaction's.
        assert own == amazons or (amazons == "invalid" and own[0] == "IdempotentParameterMismatchException")

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        self.send(data.draw(st.sampled_from(self.sent)))


def test_random_histories(engines: tuple[Engine, Engine]) -> None:
    Comparison.engines = engines
    run_state_machine_as_test(
        Comparison,
        settings=settings(
            max_examples=max(1, NUMBER // STEPS),
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
        ),
    )
