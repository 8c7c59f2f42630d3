"""Applies the firewall's rule for API keys; the web ACL in template.yaml defines the rule.

AWS WAF applies the rule before API Gateway looks for a route. This module leaves out the two
rate-based rules of the web ACL.
"""

import re
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response

_MEDIA_TYPES = {"APPLICATION_JSON": "application/json"}


class Firewall:
    """A web ACL that allows a request if one of its headers matches a regular expression.

    Args:
        web_acl: The properties of an AWS::WAFv2::WebACL with one rule whose action is Allow.
    """

    def __init__(self, web_acl: dict[str, Any]) -> None:
        (rule,) = [rule for rule in web_acl["Rules"] if "Allow" in rule["Action"]]
        match = rule["Statement"]["RegexMatchStatement"]
        self._header = match["FieldToMatch"]["SingleHeader"]["Name"]
        self._pattern = match["RegexString"]
        self._response = web_acl["DefaultAction"]["Block"]["CustomResponse"]
        key = self._response["CustomResponseBodyKey"]
        self._body = web_acl["CustomResponseBodies"][key]

    def allows(self, headers: Headers) -> bool:
        """Return whether a request is allowed; commas join the values of a repeated header."""
        value = ",".join(headers.getlist(self._header))
        return re.search(self._pattern, value) is not None

    def block_response(self) -> Response:
        """Return the response to a blocked request."""
        pairs = self._response["ResponseHeaders"]
        headers = {pair["Name"]: pair["Value"] for pair in pairs}
        status = self._response["ResponseCode"]
        media_type = _MEDIA_TYPES[self._body["ContentType"]]
        return Response(self._body["Content"], status, headers, media_type)
