"""The store as containers reach it: one address, and one access key id."""

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from botocore.session import Session

from tools.local.store import Database
from tools.local.store_server import serve


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "store")) as database:
        yield database


def test_client_with_the_access_key_id_is_answered(database: Database) -> None:
    with serve(database, "127.0.0.1") as (port, access_key_id):
        dynamodb: Any = Session().create_client(
            "dynamodb",
            "us-east-1",
            endpoint_url=f"http://127.0.0.1:{port}",
            aws_access_key_id=access_key_id,
            aws_secret_access_key="none",
        )
        with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
            dynamodb.scan(TableName="Notes")
        dynamodb.close()

    assert len(access_key_id) == 32


def test_others_are_not_answered(database: Database) -> None:
    with serve(database, "127.0.0.1") as (port, access_key_id):
        headers = {"Authorization": f"Credential={access_key_id[:-1]}/"}
        answer = httpx2.post(f"http://127.0.0.1:{port}/", headers=headers)

    assert answer.status_code == 403


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1"])
def test_only_one_address_answers(database: Database, address: str) -> None:
    """The loopback address stands in for one that is not this machine's."""
    with serve(database, address) as (port, _):
        socket.create_connection(("127.0.0.1", port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))
