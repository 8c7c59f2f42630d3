"""The firewall of production: which requests pass, and what the others get."""

import re

import pytest

from tests.contract import openapi
from tests.support.stack import read_stage
from tools.key_table import generate

WEB_ACL = read_stage()["Resources"]["WebAcl"]["Properties"]


@pytest.mark.parametrize(
    ("authorization", "is_allowed"),
    [
        ("Bearer {key}", True),
        ("bEaReR   {key} ", True),
        ("", False),
        ("{key}", False),
        ("Basic {key}", False),
        ("Bearer {key}x", False),
        ("Bearer {key} {key}", False),
        ("Bearer {key},Bearer {key}", False),
    ],
)
def test_only_one_well_formed_key_passes(authorization: str, is_allowed: bool) -> None:
    value = authorization.format(key=generate("live"))
    (rule,) = [rule for rule in WEB_ACL["Rules"] if "Allow" in rule["Action"]]
    match = rule["Statement"]["RegexMatchStatement"]

    assert match["FieldToMatch"] == {"SingleHeader": {"Name": "authorization"}}
    assert bool(re.search(match["RegexString"], value)) == is_allowed


@openapi.each_operation
def test_refused_request_gets_the_documented_401(operation: openapi.Operation) -> None:
    response = WEB_ACL["DefaultAction"]["Block"]["CustomResponse"]
    body = WEB_ACL["CustomResponseBodies"][response["CustomResponseBodyKey"]]
    headers = {
        header["Name"]: header["Value"] for header in response["ResponseHeaders"]
    }

    assert body["ContentType"] == "APPLICATION_JSON"
    assert headers == {
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "WWW-Authenticate": 'Bearer realm="animal-store"',
    }
    headers |= {"Content-Type": "application/json", "x-amzn-RequestId": "id"}
    openapi.check(operation, response["ResponseCode"], headers, body["Content"])
