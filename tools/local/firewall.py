"""The firewall's rule for API keys, as template.yaml's web ACL has it, and its answer.

Its two rules of rates are not imitated. AWS WAF applies rules before API Gateway looks for a route.
"""

import re
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response

from tools.local import LocalError

_MEDIA_TYPES = {"APPLICATION_JSON": "application/json", "TEXT_PLAIN": "text/plain"}


@dataclass(frozen=True)
class Firewall:
    """A web ACL that lets requests through whose header matches a regular expression.

    Args:
        header: The name of the header.
        pattern: The regular expression.
        response: The `CustomResponse` for the other requests.
        body: Its `CustomResponseBody`.
    """

    header: str
    pattern: str
    response: dict[str, Any]
    body: dict[str, str]

    def lets_through(self, headers: Headers) -> bool:
        """Tell whether a request passes; two headers of one name are read as one list."""
        value = ",".join(headers.getlist(self.header))
        return re.search(self.pattern, value) is not None

    def refusal(self) -> Response:
        """Make the answer to a request that does not pass."""
        headers = {
            header["Name"]: header["Value"]
            for header in self.response["ResponseHeaders"]
        }
        media_type = _MEDIA_TYPES[self.body["ContentType"]]
        status = int(self.response["ResponseCode"])
        return Response(self.body["Content"], status, headers, media_type)


def read_firewall(web_acl: dict[str, Any]) -> Firewall:
    """Read the properties of an AWS::WAFv2::WebACL; LocalError if it has other rules."""
    rules = [
        rule
        for rule in web_acl["Rules"]
        if "RateBasedStatement" not in rule["Statement"]
    ]
    match rules, web_acl["DefaultAction"]:
        case [
            {
                "Statement": {
                    "RegexMatchStatement": {
                        "FieldToMatch": {"SingleHeader": {"Name": str(header)}},
                        "RegexString": str(pattern),
                        "TextTransformations": [{"Type": "NONE"}],
                    }
                },
                "Action": {"Allow": {}},
            }
        ], {"Block": {"CustomResponse": response}}:
            body = web_acl["CustomResponseBodies"][response["CustomResponseBodyKey"]]
            return Firewall(header, pattern, response, body)
    raise LocalError(f"these rules of a firewall are not served here: {rules}")
