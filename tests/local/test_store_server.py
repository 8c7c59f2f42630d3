"""The store as containers reach it: one address, and one access key id."""

import socket

import httpx2
import pytest

from tests.support.handlers import DATABASE
from tools.local.store_server import serve_store


# 192.0.2.1 is not this machine's: the store listens on the loopback address instead.
@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1"])
def test_store_listens_on_a_loopback_address_and_refuses_another_key(
    address: str,
) -> None:
    with serve_store(DATABASE, address) as (port, access_key_id):
        headers = {"Authorization": f"Credential={access_key_id[:-1]}/"}
        response = httpx2.post(f"http://127.0.0.1:{port}/", headers=headers)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))

    assert response.status_code == 403
