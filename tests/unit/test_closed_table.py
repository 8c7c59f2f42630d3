"""A table that another one has replaced takes no animals: see `cut_over` in tools/deployment/restore.py."""

from tests.support import handlers
from tests.support.fault_injection import DENIED, FaultyStore
from tests.support.requests import Send

NEW = '{"name": "Rex", "categoryId": 1}'


def test_a_closed_table_answers_a_creation_with_503(store: FaultyStore, send: Send) -> None:
    before = send("list_pets").body
    handlers.client(store.database).update_item(
        TableName=handlers.TEMPLATE.tables["AnimalsTable"].name,
        Key={"pk": {"S": "counter"}, "id": {"N": "0"}},
        UpdateExpression="SET closed = :now",
        ExpressionAttributeValues={":now": {"N": "1800000000"}},
    )

    response = send("create_pet", body=NEW)

    assert response.status == 503
    assert response.body["code"] == "service_unavailable"
    assert response.headers["Retry-After"]
    assert send("list_pets").body == before


def test_a_counter_that_the_role_may_not_change_is_an_error(store: FaultyStore, send: Send) -> None:
    store.fail("UpdateItem", DENIED)

    assert send("create_pet", body=NEW).status == 500
