"""Looking certificate authorities up in a directory: which servers are trusted, on a TLS server of our own."""

import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from animal_store import certificates, dynamodb
from animal_store.errors import ServiceUnavailable
from botocore import httpsession
from botocore.awsrequest import AWSHTTPSConnection, AWSHTTPSConnectionPool
from botocore.exceptions import SSLError
from werkzeug import Response

from tests.support.scripted_server import serve
from tools.packaging import authorities


def new_authority() -> trustme.CA:
    """Make an authority that has the same name each time, and another key."""
    return trustme.CA(organization_name="Authority", organization_unit_name="of the tests")


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Allow sockets, in place of the fixture that forbids them: every server here is on loopback."""


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """Put one authority of the tests into the directory, and have the SDK use it."""
    authority = new_authority()
    authority.cert_pem.write_to_path(tmp_path / "bundle.pem")
    authorities.write(tmp_path / "bundle.pem", tmp_path / "authorities")
    monkeypatch.setattr(certificates, "DIRECTORY", tmp_path / "authorities")
    monkeypatch.setattr(AWSHTTPSConnectionPool, "ConnectionCls", AWSHTTPSConnection)
    # As in the layer, which has no certifi: where it is installed, the SDK takes its bundle.
    monkeypatch.setattr(httpsession, "where", lambda: httpsession.DEFAULT_CA_BUNDLE)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    return authority


def ask(certificate: trustme.LeafCert, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a server with this certificate twice, on two connections, without the SDK's retries."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with serve(lambda *_: Response("{}"), context) as server:
        monkeypatch.setenv(
            "AWS_ENDPOINT_URL_DYNAMODB",
            server.origin.replace("http://127.0.0.1", "https://localhost"),
        )
        client = dynamodb._client()
        for _ in range(2):
            dynamodb.invocation.set(
                dynamodb.Invocation(time.monotonic() + dynamodb._ATTEMPT_SECONDS + 1)
            )
            assert (
                dynamodb.call(client.get_item, TableName="t", Key={"pk": {"S": "x"}})["Raw"]
                == b"{}"
            )


UNKNOWN = "unable to get local issuer certificate"
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
REFUSED: dict[str, tuple[str, Callable[[trustme.CA], trustme.LeafCert]]] = {
    "unknown authority": (UNKNOWN, lambda _: trustme.CA().issue_cert("localhost")),
    # Found by its name, but its key is not the one that has signed.
    "false authority": (UNKNOWN, lambda _: new_authority().issue_cert("localhost")),
    "expired": (
        "certificate has expired",
        lambda trusted: trusted.issue_cert("localhost", not_after=YESTERDAY),
    ),
    "wrong host": (
        "'localhost' doesn't match 'other.example'",
        lambda trusted: trusted.issue_cert("other.example"),
    ),
}


@pytest.mark.parametrize(("reason", "issue"), REFUSED.values(), ids=REFUSED)
def test_server_of_a_known_authority_is_trusted_and_others_are_refused(
    reason: str,
    issue: Callable[[trustme.CA], trustme.LeafCert],
    trusted: trustme.CA,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for authority in (trusted, trusted.create_child_ca()):
        ask(authority.issue_cert("localhost"), monkeypatch)

    with pytest.raises(ServiceUnavailable) as raised:
        ask(issue(trusted), monkeypatch)

    assert isinstance(raised.value.__cause__, SSLError)
    assert reason in str(raised.value.__cause__)


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_a_bundle_that_the_user_names_is_all_that_counts(
    variable: str, trusted: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = trustme.CA()
    private.cert_pem.write_to_path(tmp_path / "private.pem")
    monkeypatch.setenv(variable, str(tmp_path / "private.pem"))

    ask(private.issue_cert("localhost"), monkeypatch)
    with pytest.raises(ServiceUnavailable):
        ask(trusted.issue_cert("localhost"), monkeypatch)


@pytest.mark.usefixtures("trusted")
def test_without_the_directory_the_sdk_connects_as_always(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "DIRECTORY", tmp_path / "absent")

    certificates.register()

    assert AWSHTTPSConnectionPool.ConnectionCls is AWSHTTPSConnection
