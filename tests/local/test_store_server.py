"""The store as containers reach it: one address, and one access key id."""

import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from botocore.session import Session

from tools.local.store import Database
from tools.local.store_server import serve


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "store")) as database:
        yield database


def test_client_with_the_access_key_id_is_answered(database: Database) -> None:
    with (
        serve(database, "127.0.0.1") as (port, access_key_id),
        serve(database, "127.0.0.1") as (_, other),
    ):
        assert access_key_id[:8] != other[:8]
        assert len(access_key_id) == 32
        dynamodb: Any = Session().create_client(
            "dynamodb",
            "us-east-1",
            endpoint_url=f"http://127.0.0.1:{port}",
            aws_access_key_id=access_key_id,
            aws_secret_access_key="none",
        )
        with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
            dynamodb.scan(TableName="Notes")


@pytest.mark.parametrize(
    ("authorization", "size", "status"),
    [
        ("{}", 2, 403),
        ("Credential={:.31}/", 2, 403),
        ("Credential={}/", 16 * 1024 * 1024 + 1, 413),
    ],
)
def test_refused_body_is_not_read(
    database: Database, authorization: str, size: int, status: int
) -> None:
    with (
        serve(database, "127.0.0.1") as (port, access_key_id),
        closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection,
    ):
        headers = {"Authorization": authorization.format(access_key_id)}
        headers["Content-Length"] = str(size)
        connection.request("POST", "/", headers=headers)
        answer = connection.getresponse()

    assert (answer.status, answer.will_close) == (status, True)


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1"])
def test_only_one_address_answers(database: Database, address: str) -> None:
    """The loopback address stands in for one that is not this machine's."""
    with serve(database, address) as (port, _):
        socket.create_connection(("127.0.0.1", port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))
