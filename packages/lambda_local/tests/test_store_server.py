"""The store as containers reach it: one address, and one access key id."""

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.session import Session
from lambda_local.dynamodb import Database
from lambda_local.store_server import serve

NOTES: Any = yaml.safe_load(Path(__file__).with_name("notes.yaml").read_text("utf-8"))
NOTE = {"pk": {"S": "note"}, "id": {"N": "1"}}


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
    dynamodb.create_table(TableName="Notes", **NOTES)

    dynamodb.put_item(TableName="Notes", Item=NOTE)

    assert dynamodb.scan(TableName="Notes")["Items"] == [NOTE]


def test_access_key_id_cannot_be_guessed(served: tuple[int, str], tmp_path: Path) -> None:
    with closing(Database(tmp_path / "store")) as database, serve(database, "127.0.0.1") as other:
        assert len({served[1], other[1]}) == 2
        assert len(other[1]) == 32


@pytest.mark.parametrize(
    ("header", "size", "status"),
    [
        ("Host: localhost", 2, 400),
        ("Authorization: {}", 2, 400),
        ("Authorization: Credential={:.31}/", 2, 400),
        ("Authorization: Credential={}/", 16 * 1024 * 1024 + 1, 413),
    ],
)
def test_refused_body_is_not_read(
    served: tuple[int, str], header: str, size: int, status: int
) -> None:
    port, access_key_id = served
    head = f"POST / HTTP/1.1\r\n{header.format(access_key_id)}\r\nContent-Length: {size}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head.encode())
        answer = connection.makefile("rb").read()  # to the connection's end

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())


def test_idle_connection_ends(tmp_path: Path) -> None:
    with (
        closing(Database(tmp_path / "store")) as database,
        serve(database, "127.0.0.1", idle_s=0.1) as (port, _),
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        assert connection.recv(1) == b""


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
