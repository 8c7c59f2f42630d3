"""Reads openapi.yaml for tests, and compares responses with it."""

import re
from collections.abc import Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic_core import from_json

_PATH = Path(__file__).parents[2] / "openapi.yaml"
# The loader in C is several times as fast.
_SOURCE: Any = yaml.load(_PATH.read_bytes(), yaml.CSafeLoader)


def _resolve(node: Any) -> Any:
    """Replace each `$ref` in a node of the document by the node to which it refers."""
    match node:
        case {"$ref": str(reference)}:
            return _resolve(reduce(getitem, reference.split("/")[1:], _SOURCE))
        case dict():
            return {name: _resolve(value) for name, value in node.items()}
        case list():
            return [_resolve(value) for value in node]
    return node


DOCUMENT: dict[str, Any] = _resolve(_SOURCE)
"""The document, in which each `$ref` is replaced."""
PARAMETERS: dict[str, Any] = DOCUMENT["components"]["parameters"]
LIMIT: dict[str, int] = PARAMETERS["Limit"]["schema"]
"""The `minimum`, `maximum` and `default` of the parameter `limit`."""
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
_CODE_TABLE = SCHEMAS["Error"]["properties"]["code"]["description"]
CODES = dict(re.findall(r"(?m)^\| `(\w+)` \| ([\d, ]+) \|", _CODE_TABLE))
"""Maps each `code` of an Error to its statuses, such as `500, 502`."""


class Operation(NamedTuple):
    """An operation: its `operationId`, method, path, and declared responses by status."""

    id: str
    method: str
    path: str
    responses: dict[str, Any]

    @property
    def block(self) -> str:
        """The prefix of its resources' names in template.yaml, such as `ListPets`."""
        return self.id[0].upper() + self.id[1:]

    def with_id(self, value: str) -> str:
        """Return the path with a value for its parameter, if it has one."""
        return re.sub(r"{\w+}", value, self.path)


OPERATIONS = [
    Operation(operation["operationId"], method.upper(), path, operation["responses"])
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if method != "parameters"
]
# Like InternalError, a 404 for an unknown route has no headers of its own.
UNKNOWN_ROUTE = Operation(
    "", "", "", {"404": DOCUMENT["components"]["responses"]["InternalError"]}
)

each_operation = pytest.mark.parametrize(
    "operation", OPERATIONS, ids=lambda operation: operation.id
)
"""Runs a test with each operation."""


def find(method: str, path: str) -> Operation:
    """Return the operation of a method and a percent-encoded path, or UNKNOWN_ROUTE."""
    for operation in OPERATIONS:
        # A server may split a path at an encoded slash (%2F), and then finds no route.
        pattern = operation.with_id("((?!%2[Ff])[^/])+")
        if operation.method == method and re.fullmatch(f"{pattern}/?", path):
            return operation
    return UNKNOWN_ROUTE


def check_common_headers(headers: httpx2.Headers) -> None:
    """Fail if a common header is missing or wrong ("Responses" in openapi.yaml)."""
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


def check(
    operation: Operation, status: int, headers: Mapping[str, str], body: str | bytes
) -> None:
    """Fail if the operation does not declare such a response.

    Raises:
        ValidationError: A header or the body does not have the declared schema.
        ValueError: The body is not JSON.
        AssertionError, KeyError: Anything else differs.
    """
    received_headers = httpx2.Headers(headers)
    check_common_headers(received_headers)
    declared_response = operation.responses.get(str(status))
    assert declared_response, f"{status} is not declared: {body!r:.500}"
    for name, header in declared_response.get("headers", {}).items():
        if name not in received_headers:
            assert not header.get("required"), f"the header {name} is missing"
            continue
        value = received_headers[name]
        number_or_text = int(value) if value.isdecimal() else value
        Draft202012Validator(header["schema"]).validate(number_or_text)
    if "content" not in declared_response:
        assert not body
        return
    content = from_json(body, allow_inf_nan=False)
    schema = declared_response["content"][received_headers["content-type"]]["schema"]
    Draft202012Validator(schema).validate(content)
    if status >= 400:
        assert content.keys() == {"code", "message", "status"}
        assert content["status"] == status
        assert str(status) in CODES[content["code"]]
