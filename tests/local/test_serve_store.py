"""The server through which functions in containers reach the store."""

import socket

import httpx2
import pytest

from tests.support.handlers import ANIMALS, service
from tools.local.serve_store import serve_store


def scan(port: int, access_key_id: str) -> int:
    """Return the status of a Scan with this access key id."""
    headers = {
        "Authorization": f"Credential={access_key_id}/",
        "X-Amz-Target": "DynamoDB_20120810.Scan",
    }
    url, request = f"http://127.0.0.1:{port}", {"TableName": ANIMALS}
    return httpx2.post(url, headers=headers, json=request).status_code


# 192.0.2.1 is not an address of this machine, so the server uses the loopback address instead.
@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1"])
def test_store_needs_its_key_and_listens_on_one_address(address: str) -> None:
    with serve_store(service().database, address) as (port, access_key_id):
        assert scan(port, access_key_id) == 200
        assert scan(port, access_key_id[:-1]) == 403
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))
