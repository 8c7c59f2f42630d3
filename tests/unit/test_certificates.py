"""Which servers the layer talks to with the bundle that AWS_CA_BUNDLE names, tried by TLS."""

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from animal_store import dynamodb
from animal_store.errors import ServiceUnavailable
from botocore.exceptions import SSLError
from types_boto3_dynamodb import DynamoDBClient
from werkzeug import Response

from tests.support.scripted_server import serve

YESTERDAY = datetime.now(UTC) - timedelta(days=1)


def new_authority() -> trustme.CA:
    """Make an authority that has the same name each time, and another key."""
    return trustme.CA(
        organization_name="Authority", organization_unit_name="of the tests"
    )


TRUSTED = new_authority()


@pytest.fixture(autouse=True)
def _no_network() -> None:
    """Allow sockets, in place of the fixture that forbids them: each server is on loopback."""


@pytest.fixture(autouse=True)
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name a bundle with one authority."""
    TRUSTED.cert_pem.write_to_path(tmp_path / "bundle.pem")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "bundle.pem"))


@contextmanager
def client_of(
    certificate: trustme.LeafCert, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DynamoDBClient]:
    """Make a client of a server that has a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with serve(lambda *_: Response('{"Item": {}}'), context) as server:
        origin = server.origin.replace("http://127.0.0.1", "https://localhost")
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", origin)
        yield dynamodb.new_client()


def get_item(client: DynamoDBClient) -> object:
    """Get an item, without retries."""
    # An attempt may take 3.5 seconds.
    dynamodb.invocation.set(dynamodb.Invocation(time.monotonic() + 4.5))
    key = {"pk": {"S": "x"}}
    return dynamodb.call(client.get_item, TableName="t", Key=key)["Raw"]


@pytest.mark.parametrize("authority", [TRUSTED, TRUSTED.create_child_ca()])
def test_server_of_a_known_authority_is_trusted(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client_of(authority.issue_cert("localhost"), monkeypatch) as client:
        assert get_item(client) == b'{"Item": {}}'


def test_bundle_is_read_once_for_all_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client_of(TRUSTED.issue_cert("localhost"), monkeypatch) as client:
        get_item(client)
        client.close()
        (tmp_path / "bundle.pem").unlink()

        assert get_item(client) == b'{"Item": {}}'


@pytest.mark.parametrize(
    ("certificate", "reason"),
    [
        (
            trustme.CA().issue_cert("localhost"),
            "unable to get local issuer certificate",
        ),
        # Found by its name, but its key is not the one that has signed.
        (
            new_authority().issue_cert("localhost"),
            "unable to get local issuer certificate",
        ),
        (
            TRUSTED.issue_cert("localhost", not_after=YESTERDAY),
            "certificate has expired",
        ),
        (
            TRUSTED.issue_cert("other.example"),
            "'localhost' doesn't match 'other.example'",
        ),
    ],
    ids=["unknown authority", "false authority", "expired", "wrong host"],
)
def test_other_servers_are_refused(
    certificate: trustme.LeafCert, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        client_of(certificate, monkeypatch) as client,
        pytest.raises(ServiceUnavailable) as raised,
    ):
        get_item(client)

    assert isinstance(raised.value.__cause__, SSLError)
    assert reason in str(raised.value.__cause__)
