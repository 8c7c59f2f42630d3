"""Signing: the same bytes as the SDK's own signer, and the SDK's own signer for whatever else there is to sign."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, cast
from unittest import mock

import botocore.auth
import pytest
from animal_store import dynamodb, signer
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import NoCredentialsError
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.conftest import Ask
from tests.fault_injection import LOST_REQUEST, Wire

REX = '{"name": "Rex", "categoryId": 3}'
NOON = datetime(2026, 12, 5, 12, 0, 0)  # noqa: DTZ001 - the SDK's clock gives UTC without a zone
CREDENTIALS = ReadOnlyCredentials("AKID", "SECRET", "TOKEN")

text = st.text(st.characters(min_codepoint=32, max_codepoint=126))
secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1)
times = st.datetimes(datetime(2000, 1, 1), datetime(2099, 12, 31))  # noqa: DTZ001
credentials = st.builds(ReadOnlyCredentials, secrets, secrets, st.none() | secrets)
hosts = st.sampled_from(
    [
        "https://dynamodb.eu-central-1.amazonaws.com/",
        "https://dynamodb-fips.us-gov-west-1.amazonaws.com:443/",
        "http://127.0.0.1:8000/",
        "http://[::1]:8000/",
        "https://VPCE-1.dynamodb.eu-central-1.vpce.amazonaws.com/",
    ]
)


def usual(
    url: str = "https://dynamodb.eu-central-1.amazonaws.com/",
    data: bytes = b"{}",
    headers: Mapping[str, str] = MappingProxyType({}),
) -> AWSRequest:
    return AWSRequest(
        "POST",
        url,
        {
            "X-Amz-Target": "DynamoDB_20120810.GetItem",
            "Content-Type": "application/x-amz-json-1.0",
            "User-Agent": "animal-store/1.0",
            **headers,
        },
        data,
    )


def sign(
    kind: type[SigV4Auth],
    request: AWSRequest,
    given: ReadOnlyCredentials = CREDENTIALS,
    now: datetime = NOON,
    region: str = "eu-central-1",
) -> list[tuple[str, str]]:
    """Return the headers of a signed request, in their order."""
    with (
        mock.patch.object(signer, "get_current_datetime", return_value=now),
        mock.patch.object(botocore.auth, "get_current_datetime", return_value=now),
    ):
        kind(given, "dynamodb", region).add_auth(request)
    assert request.context["timestamp"] == now.strftime("%Y%m%dT%H%M%SZ")
    return list(request.headers.items())


@pytest.fixture
def by_the_sdk() -> Iterator[mock.Mock]:
    """Tell whether the SDK's own signer was asked."""
    with mock.patch.object(SigV4Auth, "add_auth", autospec=True, side_effect=SigV4Auth.add_auth) as add_auth:
        yield add_auth


@given(hosts, st.binary(), credentials, times, st.sampled_from(["eu-central-1", "us-gov-west-1"]), text, st.booleans())
def test_signature_is_that_of_the_sdk(  # noqa: PLR0917 - as many as there are things to vary
    url: str, data: bytes, given: ReadOnlyCredentials, now: datetime, region: str, value: str, traced: bool
) -> None:
    headers = {"X-Amz-Target": value} | ({"X-Amzn-Trace-Id": value} if traced else {})

    ours, theirs = (sign(kind, usual(url, data, headers), given, now, region) for kind in (signer.Signer, SigV4Auth))

    assert ours == theirs


def test_new_credentials_and_a_new_day_take_effect_at_once() -> None:
    others = [
        (CREDENTIALS, NOON),
        (ReadOnlyCredentials("AKID", "ROTATED", "TOKEN"), NOON),
        (ReadOnlyCredentials("OTHER", "ROTATED", "RENEWED"), NOON),
        (ReadOnlyCredentials("OTHER", "ROTATED", None), NOON),
        (CREDENTIALS, NOON.replace(day=6)),
        (CREDENTIALS, NOON),
    ]

    signed = [sign(signer.Signer, usual(), given, now) for given, now in others]

    assert signed == [sign(SigV4Auth, usual(), given, now) for given, now in others]
    assert len({dict(headers)["Authorization"] for headers in signed}) == 5


UNUSUAL: dict[str, Callable[[], AWSRequest]] = {
    "other method": lambda: AWSRequest("GET", "https://dynamodb.eu-central-1.amazonaws.com/"),
    "path": lambda: usual("https://example.com/store/"),
    "no path": lambda: usual("https://example.com"),
    "query": lambda: usual("https://example.com/?a=1"),
    "another header": lambda: usual(headers={"Date": "today"}),
    "signed before": lambda: usual(headers={"Authorization": "x"}),
    "own checksum": lambda: usual(headers={"X-Amz-Content-SHA256": "x"}),
    "one header twice": lambda: usual(headers={"x-amz-target": "second"}),
}


@pytest.mark.parametrize("make", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_request_is_signed_by_the_sdk(make: Callable[[], AWSRequest], by_the_sdk: mock.Mock) -> None:
    assert sign(signer.Signer, make()) == sign(SigV4Auth, make())
    assert by_the_sdk.call_count == 2


@pytest.mark.parametrize(
    "differences",
    [
        {"params": {"a": "1"}},
        {"data": None},
        {"context": {"payload_signing_enabled": False}},
        {"context": {"checksum": {"request_algorithm": {"in": "trailer"}}}},
    ],
)
def test_unusual_payload_is_signed_by_the_sdk(differences: dict[str, Any], by_the_sdk: mock.Mock) -> None:
    ours, theirs = usual(), usual()
    for request in (ours, theirs):
        for name, value in differences.items():
            setattr(request, name, dict(value) if isinstance(value, dict) else value)

    assert sign(signer.Signer, ours) == sign(SigV4Auth, theirs)
    assert by_the_sdk.call_count == 2


def test_no_credentials_is_the_error_of_the_sdk() -> None:
    with pytest.raises(NoCredentialsError):
        signer.Signer(cast("Any", None), "dynamodb", "eu-central-1").add_auth(usual())


@pytest.mark.usefixtures("clock")
def test_every_request_of_the_layer_is_one_that_is_signed_here(ask: Ask, wire: Wire, by_the_sdk: mock.Mock) -> None:
    wire.fail("Query", LOST_REQUEST)
    for folder in ("list_pets", "get_pet", "create_pet"):
        ask(folder, body=REX)
    ask("create_pet", body=REX, headers={"Idempotency-Key": ["once"]})

    assert set(wire.sent) == {"GetItem", "Query", "PutItem", "UpdateItem", "TransactWriteItems"}
    assert wire.sent.count("Query") == 2
    assert by_the_sdk.call_count == 0


@pytest.mark.parametrize(
    ("version", "context"),
    [
        ("v4-query", {}),
        ("v4a", {"auth_type": "v4a"}),
        ("v4", {"auth_type": "none"}),
        ("v4", {"unsigned_payload": True}),
    ],
)
def test_other_kinds_of_signature_are_chosen_by_the_sdk(version: str, context: dict[str, Any]) -> None:
    events: Any = dynamodb.client.meta.events

    _, chosen = events.emit_until_response(
        "choose-signer.dynamodb.GetItem",
        signature_version=version,
        context=context,
        signing_name="dynamodb",
        region_name="eu-central-1",
    )

    assert chosen != "animal-store-v4"


def test_presigned_address_is_signed_by_the_sdk() -> None:
    address = dynamodb.client.generate_presigned_url("get_item", {"TableName": "t", "Key": {"pk": {"S": "x"}}})

    assert "X-Amz-Signature=" in address
