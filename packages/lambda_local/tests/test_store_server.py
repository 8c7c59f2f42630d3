"""The store as containers reach it: one address, and one access key id."""

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import Session
from lambda_local.dynamodb import Database
from lambda_local.store_server import serve

CREATED_WITH: Any = {
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """Serve an empty store; give its port and access key id."""
    with closing(Database(tmp_path / "store")) as database, serve(database, "127.0.0.1") as it:
        yield it


def client(port: int, access_key_id: str) -> Any:
    return Session().create_client(
        "dynamodb",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id=access_key_id,
        aws_secret_access_key="none",
    )


def test_client_with_the_access_key_id_is_answered(served: tuple[int, str]) -> None:
    dynamodb = client(*served)
    dynamodb.create_table(TableName="Notes", **CREATED_WITH)

    dynamodb.put_item(TableName="Notes", Item={"id": {"S": "a"}})

    assert dynamodb.scan(TableName="Notes")["Items"] == [{"id": {"S": "a"}}]


def test_access_key_id_cannot_be_guessed(served: tuple[int, str], tmp_path: Path) -> None:
    with closing(Database(tmp_path / "store")) as database, serve(database, "127.0.0.1") as other:
        assert len({served[1], other[1]}) == 2
        assert len(other[1]) == 32


def test_other_credentials_are_refused(served: tuple[int, str]) -> None:
    port, access_key_id = served

    with pytest.raises(ClientError, match="UnrecognizedClientException"):
        client(port, access_key_id[:-1]).list_tables()


def test_only_the_given_address_answers(served: tuple[int, str]) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", served[0]))


def test_an_address_that_is_not_of_this_machine_leads_to_the_loopback_address(
    tmp_path: Path,
) -> None:
    with (
        closing(Database(tmp_path / "store")) as database,
        serve(database, "192.0.2.1") as (port, _),
    ):
        socket.create_connection(("127.0.0.1", port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))
