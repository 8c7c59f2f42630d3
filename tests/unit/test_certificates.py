"""Which servers the layer talks to with the bundle that AWS_CA_BUNDLE names, tried by TLS."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from animal_store import dynamodb
from animal_store.errors import ServiceUnavailable
from types_boto3_dynamodb import DynamoDBClient
from werkzeug import Response

from tests.support.scripted_server import serve

TRUSTED = trustme.CA(organization_name="Authority", organization_unit_name="one")
# It has the same name and another key.
PAST = datetime(2020, 1, 1, tzinfo=UTC)
FALSE = trustme.CA(organization_name="Authority", organization_unit_name="one")


@pytest.fixture(autouse=True)
def _no_network() -> None:
    """Allow sockets, in place of the fixture that forbids them: each server is on loopback."""


@contextmanager
def client_of(
    certificate: trustme.LeafCert, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DynamoDBClient]:
    """Make a client of a server that has a certificate; the bundle has one authority."""
    TRUSTED.cert_pem.write_to_path(folder / "bundle.pem")
    with serve(lambda *_: Response('{"Item": {}}'), certificate) as server:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(folder / "bundle.pem"))
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", server.origin)
        yield dynamodb.new_client()


def get_item(client: DynamoDBClient) -> object:
    """Get an item, without retries."""
    # An attempt may take 3.5 seconds.
    dynamodb.invocation.set(dynamodb.Invocation(time.monotonic() + 4.5))
    key = {"pk": {"S": "x"}}
    return dynamodb.call(client.get_item, TableName="t", Key=key)["Raw"]


@pytest.mark.parametrize(
    ("certificate", "why"),
    [
        (FALSE.issue_cert("localhost"), "unable to get local issuer"),
        (TRUSTED.issue_cert("other.example"), "doesn't match"),
        (TRUSTED.issue_cert("localhost", not_after=PAST), "has expired"),
    ],
    ids=["authority that has only the name of the known one", "other host", "expired"],
)
def test_server_with_a_wrong_certificate_is_refused(
    certificate: trustme.LeafCert,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        client_of(certificate, tmp_path, monkeypatch) as client,
        pytest.raises(ServiceUnavailable) as raised,
    ):
        get_item(client)

    assert why in str(raised.value.__cause__)
