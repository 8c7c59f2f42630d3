"""The store as containers reach it: one address, and one access key id."""

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from tools.local.store import Database
from tools.local.store_server import serve_store


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "store")) as database:
        yield database


def test_clients_without_the_access_key_id_are_not_answered(database: Database) -> None:
    with serve_store(database, "127.0.0.1") as (port, access_key_id):
        headers = {"Authorization": f"Credential={access_key_id[:-1]}/"}
        answer = httpx2.post(f"http://127.0.0.1:{port}/", headers=headers)

    assert answer.status_code == 403
    assert len(access_key_id) == 32


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1"])
def test_only_one_address_answers(database: Database, address: str) -> None:
    """The loopback address stands in for one that is not this machine's."""
    with serve_store(database, address) as (port, _):
        socket.create_connection(("127.0.0.1", port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))
