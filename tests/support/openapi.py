"""Read openapi.yaml for tests: operations, schemas, and whether it declares a response."""

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

_TEXT = (Path(__file__).parents[2] / "openapi.yaml").read_bytes()
# The C loader is ten times as fast.
_WRITTEN: Any = yaml.load(_TEXT, yaml.CSafeLoader)


def _resolve(part: Any) -> Any:
    match part:
        case {"$ref": str(reference)}:
            return _resolve(reduce(getitem, reference.split("/")[1:], _WRITTEN))
        case dict():
            return {name: _resolve(each) for name, each in part.items()}
        case list():
            return [_resolve(each) for each in part]
    return part


DOCUMENT: dict[str, Any] = _resolve(_WRITTEN)
"""The document with its references resolved."""
PARAMETERS: dict[str, Any] = DOCUMENT["components"]["parameters"]
LIMIT: dict[str, int] = PARAMETERS["Limit"]["schema"]
"""The `minimum`, `maximum` and `default` of a page's size."""
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
_TABLE = SCHEMAS["Error"]["properties"]["code"]["description"]
CODES = dict(re.findall(r"(?m)^\| `(\w+)` \| ([\d, ]+) \|", _TABLE))
"""The statuses of each `code` of an Error, such as `500, 502`."""


class Operation(NamedTuple):
    """An operation: operationId, method in capitals, path template, and responses by status."""

    id: str
    method: str
    path: str
    responses: dict[str, Any]

    @property
    def block(self) -> str:
        """How the names of its resources in template.yaml begin: `ListPets`."""
        return self.id[0].upper() + self.id[1:]

    def with_id(self, value: str) -> str:
        """Return its path with a value for the path parameter, if there is one."""
        return re.sub(r"{\w+}", value, self.path)


OPERATIONS = [
    Operation(operation["operationId"], method.upper(), path, operation["responses"])
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if method != "parameters"  # of the path
]
# It has the headers that every error has, and the Error object.
UNKNOWN_ROUTE = Operation(
    "", "", "", {"404": DOCUMENT["components"]["responses"]["InternalError"]}
)

each_operation = pytest.mark.parametrize(
    "operation", OPERATIONS, ids=lambda operation: operation.id
)
"""Runs a test with each operation."""


def find(method: str, path: str) -> Operation:
    """Return the operation of a request by its percent-encoded path, or UNKNOWN_ROUTE.

    A slash at the end of the path does not count.
    """
    for each in OPERATIONS:
        # Whether an encoded slash splits the path is up to the server.
        template = each.with_id("((?!%2[Ff])[^/])+")
        if each.method == method and re.fullmatch(f"{template}/?", path):
            return each
    return UNKNOWN_ROUTE


def check(
    operation: Operation, status: int, headers: Mapping[str, str], body: str | bytes
) -> None:
    """Fail where a response differs from the declared one, or an Error from its status.

    Raises:
        AssertionError, KeyError: Its status, media type or `code` is not declared.
        ValidationError: A header or the body does not have the declared schema.
        ValueError: The body is not JSON.
    """
    declared = operation.responses.get(str(status))
    assert declared, f"{status} is not declared: {body!r:.500}"
    received = httpx2.Headers(headers)
    for name, header in declared.get("headers", {}).items():
        text = received.get(name)
        if text is None:
            assert not header.get("required"), f"the header {name} is missing"
            continue
        value = int(text) if text.isdecimal() else text
        Draft202012Validator(header["schema"]).validate(value)
    if "content" not in declared:
        assert not body
        return
    document = from_json(body, allow_inf_nan=False)
    schema = declared["content"][received["content-type"]]["schema"]
    Draft202012Validator(schema).validate(document)
    if status >= 400:
        assert document.keys() == {"code", "message", "status"}
        assert document["status"] == status
        assert str(status) in CODES[document["code"]]
