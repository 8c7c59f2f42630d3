"""The server through which functions in containers reach the store."""

import socket

import httpx2
import pytest

from tests.support.handlers import ANIMALS, empty_store, service
from tools.local.serve_store import serve_store


# 192.0.2.1 is not an address of this machine, so the server uses the loopback address instead.
@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1"])
def test_store_needs_its_key_and_listens_only_on_loopback(
    address: str,
) -> None:
    empty_store()
    request = {"TableName": ANIMALS, "Key": {"pk": {"S": "pet"}, "id": {"N": "2"}}}
    headers = {"X-Amz-Target": "DynamoDB_20120810.GetItem"}
    with serve_store(service().database, address) as (port, access_key_id):
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as http:
            headers["Authorization"] = f"Credential={access_key_id}/"
            accepted = http.post("/", headers=headers, json=request)
            headers["Authorization"] = f"Credential={access_key_id[:-1]}/"
            refused = http.post("/", headers=headers, json=request)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))

    assert accepted.json()["Item"]["name"] == {"S": "Mia"}
    assert refused.status_code == 403
