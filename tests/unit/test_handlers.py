"""The three operations from event to answer."""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from animal_store import api_key as api_keys
from animal_store import cursor, settings

from tests.unit.conftest import Answer, Ask
from tests.unit.fault_injection import Wire, lost_answer

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

BASE = "https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/staging/v1/pets"
REX = '{"name": "Rex", "categoryId": 3, "status": "sold"}'
MIA = '{"name": "Mia", "categoryId": 9223372036854775807}'


@pytest.fixture
def three(ask: Ask) -> list[dict[str, Any]]:
    """Add three animals: two are sold, the one between them has no status."""
    return [ask("create_pet", body=body).body for body in (REX, MIA, REX)]


def next_query(answer: Answer) -> dict[str, list[str]]:
    """Follow the link to the next page."""
    match = re.fullmatch(r'<([^>]+)>; rel="next"', answer.headers["Link"])
    assert match is not None
    url = urlsplit(match[1])
    assert url._replace(query="").geturl() == BASE
    return parse_qs(url.query, strict_parsing=True)


# -- listPets ----------------------------------------------------------------------------------------------------------


def test_list_has_every_animal_by_id_and_no_next_page(three: list[dict[str, Any]], ask: Ask) -> None:
    answer = ask("list_pets")

    assert (answer.status, answer.body) == (200, three)
    assert "Link" not in answer.headers


def test_empty_list_is_an_empty_array(ask: Ask) -> None:
    assert ask("list_pets").body == []


def test_list_has_twenty_animals_unless_told_otherwise(ask: Ask) -> None:
    for _ in range(21):
        ask("create_pet", body=MIA)

    answer = ask("list_pets")

    assert [pet["id"] for pet in answer.body] == list(range(1, 21))
    assert next_query(answer)["limit"] == ["20"]
    assert len(ask("list_pets", query={"limit": ["21"]}).body) == 21


@pytest.mark.parametrize("status", [None, "sold"])
@pytest.mark.parametrize("limit", ["1", "2", "3"])
def test_links_lead_through_the_whole_list(
    limit: str, status: str | None, three: list[dict[str, Any]], ask: Ask
) -> None:
    query: dict[str, list[str]] | None = {"limit": [limit]} | ({"status": [status]} if status else {})
    found: list[dict[str, Any]] = []
    while query and len(found) <= len(three):
        answer = ask("list_pets", query=query)
        found += answer.body
        query = next_query(answer) if "Link" in answer.headers else None
        assert query is None or len(answer.body) == int(limit)

    assert found == [pet for pet in three if status in {None, pet.get("status")}]


@pytest.mark.usefixtures("three")
def test_link_repeats_limit_and_filter(ask: Ask) -> None:
    query = next_query(ask("list_pets", query={"limit": ["1"], "status": ["sold"]}))

    assert query == {"limit": ["1"], "status": ["sold"], "cursor": [cursor.encode(1, "sold")]}


@pytest.mark.usefixtures("three")
def test_link_without_a_filter_has_none(ask: Ask) -> None:
    assert next_query(ask("list_pets", query={"limit": ["1"]})).keys() == {"limit", "cursor"}


@pytest.mark.usefixtures("three")
def test_limit_may_change_from_page_to_page(ask: Ask) -> None:
    query = next_query(ask("list_pets", query={"limit": ["1"]}))

    assert [pet["id"] for pet in ask("list_pets", query=query | {"limit": ["100"]}).body] == [2, 3]


@pytest.mark.usefixtures("three")
def test_animal_added_while_paging_is_found(ask: Ask) -> None:
    query = next_query(ask("list_pets", query={"limit": ["2"]}))
    ask("create_pet", body=MIA)

    assert [pet["id"] for pet in ask("list_pets", query=query).body] == [3, 4]


@pytest.mark.parametrize(
    ("query", "member"),
    [
        ({"limit": ["0"]}, "limit"),
        ({"limit": ["101"]}, "limit"),
        ({"limit": ["1", "1"]}, "limit"),
        ({"status": ["lost"]}, "status"),
        ({"status": ["sold", "sold"]}, "status"),
        ({"cursor": [""]}, "cursor"),
        ({"cursor": ["x"]}, "cursor"),
        ({"cursor": [cursor.encode(1, None)] * 2}, "cursor"),
        ({"cursor": [cursor.encode(1, "sold")]}, "cursor"),
        ({"cursor": [cursor.encode(1, "sold")], "status": ["pending"]}, "cursor"),
    ],
)
def test_wrong_parameter_is_400_and_named(query: dict[str, list[str]], member: str, ask: Ask) -> None:
    answer = ask("list_pets", query=query)

    assert (answer.status, answer.body["code"]) == (400, "invalid_request")
    assert answer.body["message"].startswith(f"{member}: ")


def test_unknown_parameters_are_ignored(three: list[dict[str, Any]], ask: Ask) -> None:
    assert ask("list_pets", query={"colour": ["red", "blue"], "Limit": ["0"]}).body == three


# -- createPet ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "pet"),
    [
        (REX, {"id": 1, "name": "Rex", "categoryId": 3, "status": "sold"}),
        (MIA, {"id": 1, "name": "Mia", "categoryId": 2**63 - 1}),
        ('{"id": 77, "name": "Bo", "categoryId": -1, "x": 1}', {"id": 1, "name": "Bo", "categoryId": -1}),
    ],
)
def test_added_animal_is_answered_with_its_id(body: str, pet: dict[str, Any], ask: Ask) -> None:
    answer = ask("create_pet", body=body)

    assert (answer.status, answer.body) == (201, pet)
    assert "Idempotency-Replayed" not in answer.headers
    assert ask("list_pets").body == [pet]


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": ["k"]}])
@pytest.mark.parametrize("body", [None, "{", "[]", '{"name": "Rex"}'])
def test_wrong_body_is_400_and_nothing_is_added(body: str | None, headers: dict[str, list[str]], ask: Ask) -> None:
    answer = ask("create_pet", body=body, headers=headers)

    assert (answer.status, answer.body["code"]) == (400, "invalid_request")
    assert ask("create_pet", body=REX).body["id"] == 1


def test_other_content_type_is_415(ask: Ask) -> None:
    assert ask("create_pet", body=REX, headers={"Content-Type": ["text/plain"]}).status == 415


@pytest.mark.parametrize("again", ["k", '"k"'])
def test_repeated_creation_is_answered_as_the_first(again: str, ask: Ask) -> None:
    first = ask("create_pet", body=REX, headers={"Idempotency-Key": ["k"]})
    second = ask("create_pet", body=" " + REX, headers={"idempotency-key": [again]})

    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert (second.status, second.body) == (201, first.body)
    assert ask("list_pets").body == [first.body]


def test_reused_idempotency_key_is_422(ask: Ask) -> None:
    ask("create_pet", body=REX, headers={"Idempotency-Key": ["k"]})

    answer = ask("create_pet", body=MIA, headers={"Idempotency-Key": ["k"]})

    assert (answer.status, answer.body["code"]) == (422, "idempotency_key_reused")
    assert len(ask("list_pets").body) == 1


def test_same_idempotency_key_of_another_caller_is_another(ask: Ask, tables: "DynamoDBClient") -> None:
    other = api_keys.generate("test")
    tables.put_item(
        TableName=settings.API_KEYS_TABLE, Item={"hash": {"S": api_keys.digest(other)}, "label": {"S": "unit tests"}}
    )
    ask("create_pet", body=REX, headers={"Idempotency-Key": ["k"]})

    answer = ask("create_pet", body=REX, headers={"Idempotency-Key": ["k"], "Authorization": [f"Bearer {other}"]})

    assert (answer.status, answer.body["id"]) == (201, 2)
    assert "Idempotency-Replayed" not in answer.headers


def test_wrong_idempotency_key_is_400(ask: Ask) -> None:
    answer = ask("create_pet", body=REX, headers={"Idempotency-Key": [""]})

    assert (answer.status, answer.body["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem", "TransactWriteItems"])
@pytest.mark.usefixtures("clock")
def test_creation_whose_answer_is_lost_adds_one_animal(operation: str, ask: Ask, wire: Wire) -> None:
    wire.fail(operation, lost_answer)
    headers = {"Idempotency-Key": ["k"]} if operation == "TransactWriteItems" else {}

    answer = ask("create_pet", body=REX, headers=headers)

    assert answer.status == 201
    assert ask("list_pets").body == [answer.body]


# -- getPet ------------------------------------------------------------------------------------------------------------


def test_animal_is_answered(three: list[dict[str, Any]], ask: Ask) -> None:
    for pet in three:
        answer = ask("get_pet", pet_id=str(pet["id"]))
        assert (answer.status, answer.body) == (200, pet)


@pytest.mark.parametrize("pet_id", ["4", "0", "-1", "x", "1.0", "01", "9223372036854775807", "9223372036854775808"])
@pytest.mark.usefixtures("three")
def test_what_is_no_animal_is_404(pet_id: str, ask: Ask) -> None:
    answer = ask("get_pet", pet_id=pet_id)

    assert answer.status == 404
    assert answer.body == {
        "code": "not_found",
        "message": "The requested resource could not be found.",
        "status": 404,
    }


@pytest.mark.parametrize("pet_id", ["0", "x", "9223372036854775808"])
def test_what_can_be_no_id_is_not_looked_up(pet_id: str, ask: Ask, wire: Wire) -> None:
    ask("list_pets")
    wire.sent.clear()

    ask("get_pet", pet_id=pet_id)

    assert wire.sent == []
