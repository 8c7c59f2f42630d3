"""Which servers the layer talks to with the bundle that AWS_CA_BUNDLE names, tried by TLS."""

import ssl
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from animal_store import dynamodb
from animal_store.errors import ServiceUnavailable
from botocore.exceptions import SSLError
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


def get_item(certificate: trustme.LeafCert, monkeypatch: pytest.MonkeyPatch) -> object:
    """Get an item, without retries, from a server that has a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with serve(lambda *_: Response('{"Item": {}}'), context) as server:
        origin = server.origin.replace("http://127.0.0.1", "https://localhost")
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", origin)
        client = dynamodb._client()
        dynamodb.invocation.set(
            dynamodb.Invocation(time.monotonic() + dynamodb._ATTEMPT_SECONDS + 1)
        )
        return dynamodb.call(client.get_item, TableName="t", Key={"pk": {"S": "x"}})[
            "Raw"
        ]


@pytest.mark.parametrize("authority", [TRUSTED, TRUSTED.create_child_ca()])
def test_server_of_a_known_authority_is_trusted(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert get_item(authority.issue_cert("localhost"), monkeypatch) == b'{"Item": {}}'


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
    with pytest.raises(ServiceUnavailable) as raised:
        get_item(certificate, monkeypatch)

    assert isinstance(raised.value.__cause__, SSLError)
    assert reason in str(raised.value.__cause__)
