"""The firewall of production: which requests pass, and what the others get."""

import re
from typing import Any

import pytest

from tests.contract import openapi
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
def test_request_passes_only_with_one_well_formed_key(
    header: str, passes: bool
) -> None:
    value = header.format(key=generate("live"))
    (rule,) = [rule for rule in WEB_ACL["Rules"] if rule["Action"] == {"Allow": {}}]
    match = rule["Statement"]["RegexMatchStatement"]

    assert match["FieldToMatch"] == {"SingleHeader": {"Name": "authorization"}}
    assert bool(re.search(match["RegexString"], value)) == passes


@pytest.mark.parametrize(
    ("action", "status", "header"),
    [
        (
            WEB_ACL["DefaultAction"],
            401,
            ("WWW-Authenticate", 'Bearer realm="animal-store"'),
        ),
        (WEB_ACL["Rules"][0]["Action"], 429, ("Retry-After", "30")),
    ],
)
def test_blocked_request_gets_the_documented_error(
    action: Any, status: int, header: tuple[str, str]
) -> None:
    response = action["Block"]["CustomResponse"]
    body = WEB_ACL["CustomResponseBodies"][response["CustomResponseBodyKey"]]
    headers = {"Content-Type": "application/json"}
    for each in response["ResponseHeaders"]:
        headers[each["Name"]] = each["Value"]

    assert header in headers.items()
    assert response["ResponseCode"] == status
    assert body["ContentType"] == "APPLICATION_JSON"
    openapi.check(openapi.find("POST", "/pets"), status, headers, body["Content"])


def test_rate_limits_come_before_the_rule_that_allows_keys() -> None:
    per_address, per_key, _ = WEB_ACL["Rules"]
    assert [rule["Priority"] for rule in WEB_ACL["Rules"]] == [0, 1, 2]
    # `Bearer KEY` and `bearer KEY` share one count.
    for transformation in ("COMPRESS_WHITE_SPACE", "LOWERCASE"):
        assert transformation in str(per_key)
    assert per_address["Action"] == per_key["Action"]
