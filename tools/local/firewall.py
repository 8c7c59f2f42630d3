"""The firewall's rule for API keys, as template.yaml's web ACL has it, and its answer.

Its two rules of rates are not imitated. AWS WAF applies rules before API Gateway looks for a route.
"""

import re
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response

_MEDIA_TYPES = {"APPLICATION_JSON": "application/json"}


class Firewall:
    """A web ACL that lets requests through whose header matches a regular expression.

    Args:
        web_acl: The properties of an AWS::WAFv2::WebACL with one rule that lets requests through.
    """

    def __init__(self, web_acl: dict[str, Any]) -> None:
        (rule,) = [rule for rule in web_acl["Rules"] if "Allow" in rule["Action"]]
        match = rule["Statement"]["RegexMatchStatement"]
        self._header = match["FieldToMatch"]["SingleHeader"]["Name"]
        self._pattern = match["RegexString"]
        self._response = web_acl["DefaultAction"]["Block"]["CustomResponse"]
        key = self._response["CustomResponseBodyKey"]
        self._body = web_acl["CustomResponseBodies"][key]

    def lets_through(self, headers: Headers) -> bool:
        """Tell whether a request passes; two headers of one name are read as one list."""
        value = ",".join(headers.getlist(self._header))
        return re.search(self._pattern, value) is not None

    def refusal(self) -> Response:
        """Make the answer to a request that does not pass."""
        pairs = self._response["ResponseHeaders"]
        headers = {pair["Name"]: pair["Value"] for pair in pairs}
        status = self._response["ResponseCode"]
        media_type = _MEDIA_TYPES[self._body["ContentType"]]
        return Response(self._body["Content"], status, headers, media_type)
