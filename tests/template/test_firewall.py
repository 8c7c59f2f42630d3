"""The firewall of production: which requests pass, and what the others get."""

import re

import pytest

from tests.support.stack import read_stage
from tools.key_table import generate

WEB_ACL = read_stage()["Resources"]["WebAcl"]["Properties"]


@pytest.mark.parametrize(
    ("header", "passes"),
    [
        ("Bearer {key}", True),
        ("bEaReR   {key} ", True),
        ("{key}", False),
        ("Bearer {key}x", False),
        ("Bearer {key},Bearer {key}", False),
    ],
)
def test_only_one_well_formed_key_passes(header: str, passes: bool) -> None:
    value = header.format(key=generate("live"))
    (rule,) = [rule for rule in WEB_ACL["Rules"] if rule["Action"] == {"Allow": {}}]
    match = rule["Statement"]["RegexMatchStatement"]

    assert match["FieldToMatch"] == {"SingleHeader": {"Name": "authorization"}}
    assert bool(re.search(match["RegexString"], value)) == passes


def test_refused_request_gets_the_documented_401() -> None:
    response = WEB_ACL["DefaultAction"]["Block"]["CustomResponse"]
    body = WEB_ACL["CustomResponseBodies"][response["CustomResponseBodyKey"]]

    assert response["ResponseCode"] == 401
    assert response["ResponseHeaders"] == [
        {"Name": "Cache-Control", "Value": "no-store"},
        {"Name": "X-Content-Type-Options", "Value": "nosniff"},
        {"Name": "WWW-Authenticate", "Value": 'Bearer realm="animal-store"'},
    ]
    assert body == {
        "ContentType": "APPLICATION_JSON",
        "Content": '{"code":"unauthorized","message":"Missing or invalid API key.","status":401}',
    }
