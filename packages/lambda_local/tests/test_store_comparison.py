"""The local store must answer random requests as Amazon's DynamoDB Local does.

ENGINE_HISTORIES says how many histories of 53 requests; DYNAMODB_LOCAL names the folder of
DynamoDBLocal.jar. Without it or Java the test is skipped.
"""

import json
import operator
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import Session
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, fixed_dictionaries, sampled_from
from lambda_local import dynamodb_local
from lambda_local.dynamodb import Database

pytestmark = pytest.mark.slow
ENGINE = Path(
    os.environ.get("DYNAMODB_LOCAL")
    or Path(__file__).parents[3]
    / ".tools/dynamodb-local/node_modules/amplify-dynamodb-simulator/emulator"
)
TABLE: Any = yaml.safe_load(Path(__file__).with_name("notes.yaml").read_text("utf-8"))
Request = dict[str, Any]
Call = tuple[str, Request]  # a method of the client, and its parameters

NUMBERS = "0 1 -1 2 10 -3 -25 -30 9007199254740993 9007199254740992 100000000000000000000"
NUMBER = sampled_from([{"N": number} for number in NUMBERS.split()])
STRING = sampled_from([{"S": text} for text in ("", "a", "b", "B", "1", "\U0001f415", "\uffff")])
STATUS = sampled_from([{"S": "open"}, {"S": "done"}] * 20 + [{"S": ""}])
OTHER = sampled_from(
    [
        {"BOOL": True},
        {"NULL": True},
        {"L": []},
        {"M": {"a": {"BOOL": False}, "b": {"L": [{"N": "1"}, {"M": {}}]}}},
        {"M": {"b": {"L": [{"N": "1"}, {"M": {}}]}, "a": {"BOOL": False}}},
    ]
)
NAMES = {"#name": "name", "#value": "value", "#status": "status"}
VALUES = {
    ":string": STRING,
    ":number": NUMBER,
    ":status": STATUS,
    ":note": st.just({"S": "note"}),
    ":other": OTHER,
}

# Ids differ from one partition to another: how an index orders equal ids is not specified.
KEY = sampled_from(
    [{"pk": {"S": "note"}, "id": {"N": number}} for number in NUMBERS.split()] * 5
    + [
        {"pk": {"S": "\uffff"}, "id": {"N": "5"}},
        {"pk": {"S": ""}, "id": {"N": "1"}},
        {"pk": {"S": "p" * 2049}, "id": {"N": "1"}},
        {"pk": {"S": "note"}, "id": {"S": "1"}},
        {"pk": {"S": "note"}},
    ]
)
ATTRIBUTES: dict[Any, Any] = {
    "name": STRING,
    "token": STRING,
    "value": NUMBER | OTHER,
    "status": STATUS,
}
ITEM = st.builds(operator.or_, fixed_dictionaries({}, optional=ATTRIBUTES), KEY)

CONDITION = sampled_from(
    [
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
)
UPDATE = sampled_from(
    [
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
)
QUERY = sampled_from(
    [
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
)


@st.composite
def request(draw: DrawFn, required: Request, optional: Request) -> Request:
    """Make parameters of the table, with the names and values that their expressions use."""
    made: Request = {"TableName": "Notes@"}
    made |= draw(fixed_dictionaries(required, optional=optional))
    expressions = " ".join(made[name] for name in made if name.endswith("Expression"))
    if names := {name: NAMES[name] for name in NAMES if name in expressions}:
        made["ExpressionAttributeNames"] = names
    if values := {name: draw(VALUES[name]) for name in VALUES if name in expressions}:
        made["ExpressionAttributeValues"] = values
    return made


OLD = {"ReturnValuesOnConditionCheckFailure": st.just("ALL_OLD")}
IF = {"ConditionExpression": CONDITION, **OLD}
RETURNED = {"ReturnValues": sampled_from(["ALL_NEW", "UPDATED_NEW"])}
STARTS = st.builds(lambda key, status: key | {"status": status}, KEY, STATUS)
PAGE = {
    "IndexName": st.just("by-status"),
    "Limit": st.integers(1, 3),
    "ConsistentRead": st.just(True),
    "ExclusiveStartKey": KEY | STARTS,
}
ACTION = st.one_of(
    fixed_dictionaries({"Put": request({"Item": ITEM}, IF)}),
    fixed_dictionaries({"Update": request({"Key": KEY, "UpdateExpression": UPDATE}, IF)}),
    fixed_dictionaries({"Delete": request({"Key": KEY}, IF)}),
)


def item_of(action: dict[str, Request]) -> str:
    """Name the item of a part of a transaction."""
    (parameters,) = action.values()
    named = parameters.get("Key") or parameters["Item"]
    return str((named.get("pk"), named.get("id")))


# No item twice: DynamoDB Local notices that only where no condition fails before.
TRANSACTION = fixed_dictionaries(
    {"TransactItems": st.lists(ACTION, min_size=1, max_size=3, unique_by=item_of)},
    optional={"ClientRequestToken": sampled_from(["one@", "two@"])},
)
CALL = st.one_of(
    st.tuples(st.just("put_item"), request({"Item": ITEM}, IF)),
    st.tuples(
        st.just("update_item"), request({"Key": KEY, "UpdateExpression": UPDATE, **RETURNED}, IF)
    ),
    st.tuples(st.just("delete_item"), request({"Key": KEY}, IF)),
    st.tuples(st.just("get_item"), request({"Key": KEY}, {})),
    st.tuples(st.just("transact_write_items"), TRANSACTION),
    st.tuples(st.just("query"), request({"KeyConditionExpression": QUERY}, PAGE)),
)
STORED: list[Call] = [("scan", {"TableName": "Notes@"})]
for status in ("open", "done"):
    by_status = {
        "TableName": "Notes@",
        "IndexName": "by-status",
        "KeyConditionExpression": "#s = :s",
        "ExpressionAttributeNames": {"#s": "status"},
        "ExpressionAttributeValues": {":s": {"S": status}},
    }
    STORED.append(("query", by_status))


class Engine:
    """A DynamoDB, and a table in it for one history: `@` in a name stands for its number."""

    def __init__(self, **options: Any) -> None:
        config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
        self.client: Any = Session().create_client(
            "dynamodb",
            config=config,
            region_name="us-east-1",
            aws_access_key_id="none",
            aws_secret_access_key="none",
            **options,
        )
        self.history = 0

    def start(self) -> None:
        self.history += 1
        self.client.create_table(TableName=f"Notes-{self.history}", **TABLE)

    def outcome(self, method: str, parameters: Request) -> Any:
        """Send a request; return what is to be compared of the response."""
        own = json.loads(json.dumps(parameters).replace("@", f"-{self.history}"))
        try:
            response = getattr(self.client, method)(**own)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            reasons = error.response.get("CancellationReasons", [])
            # DynamoDB Local finds some mistakes late, as a reason of a cancellation.
            if "Validation" in f"{code} {reasons}":
                return "invalid"
            for reason in reasons:  # which DynamoDB Local words in two ways
                reason.pop("Message", None)
            return code, reasons, error.response.get("Item")
        if method == "scan":  # in which order partitions come is DynamoDB's own affair
            response["Items"].sort(key=lambda item: json.dumps(item, sort_keys=True))
        del response["ResponseMetadata"]
        # DynamoDB Local tells it unasked, and only now and then.
        response.pop("ConsumedCapacity", None)
        return response


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Engine]]:
    if not (shutil.which("java") and ENGINE.exists()):
        pytest.skip("no Java, or no DynamoDB Local")
    with (
        dynamodb_local.serve(ENGINE) as url,
        closing(Database(tmp_path_factory.mktemp("store") / "store.sqlite")) as database,
    ):
        own = Engine()
        database.attach(own.client)
        yield Engine(endpoint_url=url), own


@settings(
    deadline=None,
    max_examples=int(os.environ.get("ENGINE_HISTORIES", "40")),
    suppress_health_check=[*HealthCheck],
)
@given(history=st.lists(CALL, min_size=40, max_size=40))
def test_random_histories(engines: tuple[Engine, Engine], history: list[Call]) -> None:
    for engine in engines:
        engine.start()
    # Some are sent again; and at the end both have to store the same, in table and index.
    for call in [*history, *history[::5], *STORED]:
        amazons, own = (engine.outcome(*call) for engine in engines)
        # Which of two mistakes is reported is open: here, that the token is another transaction's.
        assert own == amazons or (
            amazons == "invalid" and own[0] == "IdempotentParameterMismatchException"
        )
