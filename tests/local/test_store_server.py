"""The store as containers reach it: one address, and one access key id."""

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.support.processes import store_client
from tools.local.dynamodb import Database
from tools.local.store_server import serve


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """Serve an empty store; give its port and access key id."""
    with (
        closing(Database(tmp_path / "store.sqlite")) as database,
        serve(database, "127.0.0.1") as it,
    ):
        yield it


def test_refusals_of_the_store_arrive(served: tuple[int, str]) -> None:
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        store_client(*served).get_item(TableName="none", Key={"id": {"N": "1"}})


def test_other_credentials_are_refused(served: tuple[int, str]) -> None:
    port, access_key_id = served

    with pytest.raises(ClientError, match="UnrecognizedClientException"):
        store_client(port, access_key_id[:-1]).list_tables()


def test_requests_without_credentials_are_refused(served: tuple[int, str]) -> None:
    url = f"http://127.0.0.1:{served[0]}/"

    assert httpx.post(url, content=b"{}").status_code == 400
    assert httpx.get(url).status_code == 501  # as a web page may send


def test_only_the_given_address_answers(served: tuple[int, str]) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", served[0]))


def test_an_address_that_is_not_of_this_machine_leads_to_the_loopback_address(
    tmp_path: Path,
) -> None:
    with closing(Database(tmp_path / "a")) as database, serve(database, "192.0.2.1") as (port, _):
        socket.create_connection(("127.0.0.1", port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))
