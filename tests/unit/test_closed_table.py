"""A table that another one has replaced takes no animals: see `cut_over` in tools/deployment/restore.py."""

from tests.support import handlers
from tests.support.fault_injection import Wire, error
from tests.support.requests import Ask

NEW = '{"name": "Rex", "categoryId": 1}'


def test_a_closed_table_answers_a_creation_with_503(wire: Wire, ask: Ask) -> None:
    before = ask("list_pets").body
    handlers.client(wire.database).update_item(
        TableName=handlers.TEMPLATE.tables["AnimalsTable"].name,
        Key={"pk": {"S": "counter"}, "id": {"N": "0"}},
        UpdateExpression="SET closed = :now",
        ExpressionAttributeValues={":now": {"N": "1800000000"}},
    )

    response = ask("create_pet", body=NEW)

    assert response.status == 503
    assert response.body["code"] == "service_unavailable"
    assert response.headers["Retry-After"]
    assert ask("list_pets").body == before


def test_a_counter_that_the_role_may_not_change_is_an_error(wire: Wire, ask: Ask) -> None:
    wire.fail("UpdateItem", error(400, "AccessDeniedException"))

    assert ask("create_pet", body=NEW).status == 500
