"""The store as containers reach it: one address, and one access key id."""

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from lambda_local.dynamodb import Database
from lambda_local.store_server import serve

from tests.support.processes import store_client


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """Serve an empty store; give its port and access key id."""
    with (
        closing(Database(tmp_path / "store.sqlite")) as database,
        serve(database, "127.0.0.1") as it,
    ):
        yield it


def test_other_credentials_are_refused(served: tuple[int, str]) -> None:
    port, access_key_id = served

    with pytest.raises(ClientError, match="UnrecognizedClientException"):
        store_client(port, access_key_id[:-1]).list_tables()


def test_only_the_given_address_answers(served: tuple[int, str]) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", served[0]))


def test_an_address_that_is_not_of_this_machine_leads_to_the_loopback_address(
    tmp_path: Path,
) -> None:
    with (
        closing(Database(tmp_path / "a")) as database,
        serve(database, "192.0.2.1") as (port, _),
    ):
        socket.create_connection(("127.0.0.1", port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))
