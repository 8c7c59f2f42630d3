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
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule, run_state_machine_as_test
from hypothesis.strategies import DrawFn, SearchStrategy, fixed_dictionaries, sampled_from

from tests.functions import TEMPLATE
from tests.local.dynamodb_local import dynamodb_local
from tools.local.dynamodb import Database
from tools.local.expressions import RESERVED_WORDS
from tools.local.tables import table_request

REQUESTS = int(os.environ.get("ENGINE_REQUESTS", "2000"))
Request = dict[str, Any]
Call = tuple[str, Request]
"""A method of the client, and its parameters."""


def values(kind: str, *texts: str) -> SearchStrategy[dict[str, str]]:
    return sampled_from(texts).map(lambda text: {kind: text})


VALUES = {
    ":number": values("N", "0", "1", "-1", "2", "10", "-9", "-10", "100", "-9007199254740993", "9" * 20),
    ":string": values("S", "", "a", "b", "B", "1", "sold", "\U0001f415", "\uffff"),
    ":status": values("S", *["available", "pending", "sold"] * 20, ""),
    ":pet": values("S", "pet"),
}
TYPES = {"#name": ":string", "token": ":string", "#value": ":number", "expires": ":number", "#status": ":status"}
ITEM = fixed_dictionaries({}, optional={name.strip("#"): VALUES[kind] for name, kind in TYPES.items()})

# Ids differ from one partition to another: DynamoDB does not say how an index orders two animals with the same id.
IDS = {
    "pet": "1 2 10 -3 -25 -30 9007199254740993 9007199254740992 100000000000000000000",
    "counter": "0",
    "\uffff": "5",
}
KEYS: dict[str, list[Request]] = {
    "AnimalsTable": [{"pk": {"S": pk}, "id": {"N": id_}} for pk, ids in IDS.items() for id_ in ids.split()],
    "ApiKeysTable": [{"hash": {"S": hash_}} for hash_ in ("a", "b", "c")],
}
WRONG_KEYS: list[Request] = [{"pk": {"S": ""}, "id": {"N": "1"}}, {"pk": {"S": "pet"}, "id": {"S": "1"}}]
WRONG_KEYS += [
    {"pk": {"S": "p" * 2049}, "id": {"N": "1"}},
    {"pk": {"S": "pet"}},
    {"hash": {"S": ""}},
    {"hash": {"N": "1"}},
]

TESTS = [f"attribute_{exists}({name})" for name in (*TYPES, "pk", "id") for exists in ("exists", "not_exists")] * 10
TESTS += [f"{name} {sign} {TYPES[name]}" for name in TYPES for sign in ("=", "<", "<=", ">", ">=")] * 10
TESTS += ["expires > :string", "token <= :number", "", " ", "pk", "attribute_exists(pk", "attribute_exists(pk, id)"]
TESTS += ["token = :none", "#none = :string", "status = :string", "token == :string", "token = :string pk", "OR"]
SETS = [f"{name} = {kind}" for name, kind in TYPES.items()] * 3
# DynamoDB Local takes a status that is a number in an update. DynamoDB does not, and neither does the store.
SETS += [
    f"{name} = if_not_exists({other}, {kind})"
    for name, kind in TYPES.items()
    for other in TYPES
    if TYPES[other] == kind
]
SETS += ["token = if_not_exists(pk, :string)"]
SETS += [
    "token",
    "token = :none",
    "status = :status",
    "pk = :string",
    "id = :number",
    "#name = if_not_exists(pk, :string",
]
ADDS = ["#value :number", "expires :number"] * 9 + ["#value", "expires :string"]
QUERIES = ["{0} = {1}", "{0} = {1} AND id > :number", "id > :number AND {0} = {1}"] * 6
QUERIES += [
    "",
    "{0}",
    "id > :number",
    "{0} > {1}",
    "{0} = {1} OR id > :number",
    "{0} = :number",
    "{0} = {1} AND id > :string",
]
QUERIES += ["{0} = {1} AND token > :number", "{0} = {1} AND id > :number AND id > :number"]


def some(*forms: str, begin: str = "", between: str = ", ") -> SearchStrategy[str]:
    """Make an expression of one to three parts, mostly about different attributes."""
    parts = st.lists(sampled_from(forms), min_size=1, max_size=3, unique_by=lambda form: form.partition(" =")[0])
    return parts.map(lambda chosen: begin + between.join(chosen))


CONDITION: SearchStrategy[Request] = fixed_dictionaries(
    {"ConditionExpression": some(*TESTS, between=" OR ")},
    optional={"ReturnValuesOnConditionCheckFailure": sampled_from(["ALL_OLD", "NONE"])},
)
UPDATE: SearchStrategy[Request] = fixed_dictionaries(
    {
        "UpdateExpression": some(*SETS, begin="SET ")
        | some(*ADDS, begin="ADD ")
        | sampled_from(["", "SET", "token = :string"]),
        "ReturnValues": sampled_from(["NONE", "ALL_NEW", "UPDATED_NEW"]),
    }
)


@st.composite
def requests(draw: DrawFn, method: str) -> Request:
    """Make the parameters of a call that names one table."""
    table = "AnimalsTable" if method == "query" else draw(sampled_from([*KEYS]))
    key = draw(sampled_from(KEYS[table] * 10 + WRONG_KEYS))
    made: Request = {"TableName": f"{table}@"}
    if method == "query":
        made |= draw(
            fixed_dictionaries({}, optional={"Limit": st.integers(1, 3), "ConsistentRead": sampled_from([True])})
        )
        if is_index := draw(st.booleans()):
            made["IndexName"] = "by-status"
        if draw(st.booleans()):
            made["ExclusiveStartKey"] = key | ({"status": draw(VALUES[":status"])} if is_index else {})
        form = draw(sampled_from(QUERIES))
        made["KeyConditionExpression"] = form.format(*(("#status", ":status") if is_index else ("pk", ":pet")))
    else:
        made |= {"Item": draw(ITEM) | key} if method == "put_item" else {"Key": key}
        made |= draw(UPDATE) if method == "update_item" else {}
        made |= draw(CONDITION) if method != "get_item" and draw(st.booleans()) else {}
    used = re.findall(r"[#:]\w+", " ".join(made[name] for name in made if name.endswith("Expression")))
    used += [":pet"] if used and not draw(st.integers(0, 29)) else []  # which is not used, but by a query
    names = {name: name[1:] for name in TYPES if name in used}
    literals = {name: draw(VALUES[name]) for name in VALUES if name in used}
    both = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": literals}
    return made | {name: defined for name, defined in both.items() if defined}


def key_of(put: Request) -> str:
    return str([put["Item"].get(name) for name in ("pk", "id", "hash")])


@st.composite
def calls(draw: DrawFn) -> Call:
    method = draw(sampled_from(["put_item", "update_item", "get_item", "transact_write_items", "query", "query"]))
    if method != "transact_write_items":
        return method, draw(requests(method))
    puts = st.lists(requests("put_item"), min_size=1, max_size=3, unique_by=key_of)
    actions = [{"Put": put} for put in draw(puts)]
    token = draw(sampled_from([{}, {"ClientRequestToken": "one@"}, {"ClientRequestToken": "two@"}]))
    return method, {"TransactItems": actions} | token


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

    def outcome(self, method: str, parameters: Request) -> Any:
        """Send a request; return what is to be compared of the response."""
        try:
            response = getattr(self.client, method)(**json.loads(json.dumps(parameters).replace("@", self.suffix)))
        except ClientError as error:
            code, reasons = error.response["Error"]["Code"], error.response.get("CancellationReasons")
            # DynamoDB Local finds some mistakes late, as a reason of a cancellation; the store makes no difference.
            return "invalid" if "Validation" in f"{code} {reasons}" else (code, reasons, error.response.get("Item"))
        if method == "scan":  # in which order partitions come is DynamoDB's own affair
            response["Items"].sort(key=lambda item: json.dumps(item, sort_keys=True))
        # DynamoDB Local tells the second one unasked, and only now and then.
        return {name: response[name] for name in response.keys() - {"ResponseMetadata", "ConsumedCapacity"}}


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Engine]]:
    access: Any = {"region_name": "eu-central-1", "aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    with dynamodb_local() as url:
        own = boto3.client("dynamodb", config=config, **access)
        database = Database(tmp_path_factory.mktemp("store") / "store.sqlite")
        database.attach(own)
        yield Engine(boto3.client("dynamodb", endpoint_url=url, config=config, **access)), Engine(own)
        database.close()


class Comparison(RuleBasedStateMachine):
    """Sends the same requests to both engines."""

    engines: ClassVar[tuple[Engine, Engine]]
    requests: ClassVar = 0
    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        for engine in self.engines:
            engine.start()

    @rule(call=calls(), target=sent)
    def send(self, call: Call) -> Call:
        self.compare(call)
        return call

    @rule(call=sent)
    def send_again(self, call: Call) -> None:
        self.compare(call)

    def compare(self, call: Call) -> None:
        Comparison.requests += 1
        amazons, own = (engine.outcome(*call) for engine in self.engines)
        # Which of two mistakes is reported is open: here, that the token is another transaction's.
        assert own == amazons or (amazons == "invalid" and own[0] == "IdempotentParameterMismatchException")

    def teardown(self) -> None:
        for table in KEYS:
            self.compare(("scan", {"TableName": f"{table}@"}))


def test_random_histories(engines: tuple[Engine, Engine]) -> None:
    Comparison.engines, Comparison.requests = engines, 0
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    while (missing := REQUESTS - Comparison.requests) > 0:
        histories = settings(
            max_examples=missing // 50 + 1, stateful_step_count=50, deadline=None, suppress_health_check=checks
        )
        run_state_machine_as_test(Comparison, settings=histories)
    print(f"{Comparison.requests} requests, the same responses")


def test_reserved_words(engines: tuple[Engine, Engine]) -> None:
    for engine in engines:
        engine.start()
    # DynamoDB Local does not know the two that are left out; DynamoDB's documentation does.
    for word in RESERVED_WORDS - {"CONVERT", "SIZE"} | {"label", "created", "revoked", "pk", "petId"}:
        put = {"TableName": "ApiKeysTable@", "Item": KEYS["ApiKeysTable"][0]}
        put |= {"ConditionExpression": f"attribute_not_exists({word.lower()})"}
        amazons, own = (engine.outcome("put_item", put) for engine in engines)
        assert own == amazons, word
