"""Read openapi.yaml for tests: operations, schemas, and whether it declares a response."""

import re
from collections.abc import Mapping
from functools import cache, reduce
from operator import getitem
from typing import Any, NamedTuple

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic_core import from_json

from tools import ROOT


@cache
def document() -> dict[str, Any]:
    """Read the document, with its references resolved."""
    loaded = yaml.safe_load((ROOT / "openapi.yaml").read_text("utf-8"))

    def resolve(part: Any) -> Any:
        match part:
            case {"$ref": str(reference)}:
                return resolve(reduce(getitem, reference.split("/")[1:], loaded))
            case dict():
                return {name: resolve(each) for name, each in part.items()}
            case list():
                return [resolve(each) for each in part]
        return part

    resolved: dict[str, Any] = resolve(loaded)
    return resolved


LIMIT: dict[str, int] = document()["components"]["parameters"]["Limit"]["schema"]
"""The `minimum`, `maximum` and `default` of a page's size."""
STATUSES: list[str] = document()["components"]["schemas"]["PetStatus"]["enum"]


class Operation(NamedTuple):
    """An operation: operationId, method in capitals, path template, and responses by status."""

    id: str
    method: str
    path: str
    responses: dict[int, Any]
    has_body: bool

    def with_id(self, value: str) -> str:
        """Return its path with a value for the path parameter, if there is one."""
        return re.sub(r"{\w+}", value, self.path)


@cache
def operations() -> tuple[Operation, ...]:
    """List every operation."""
    found = []
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            if method == "parameters":  # of the path
                continue
            responses = operation["responses"].items()
            declared = {int(key): value for key, value in responses if key != "default"}
            name = operation["operationId"]
            has_body = "requestBody" in operation
            found.append(Operation(name, method.upper(), path, declared, has_body))
    return tuple(found)


each_operation = pytest.mark.parametrize(
    "operation", operations(), ids=[operation.id for operation in operations()]
)
"""Runs a test with each operation."""


def find(method: str, path: str) -> Operation | None:
    """Return the operation of a request by its percent-encoded path; None for an unknown route."""
    for each in operations():
        # Whether an encoded slash splits the path is up to the server.
        template = each.with_id("((?!%2[Ff])[^/])+")
        if each.method == method and re.fullmatch(template, path):
            return each
    return None


@cache
def statuses_of_codes() -> dict[str, set[int]]:
    """Return the statuses of each `code` of an Error: the table in its description."""
    description = schema("Error")["properties"]["code"]["description"]
    table = re.findall(r"^\| `(\w+)` \| ([\d, ]+) \|", description, re.MULTILINE)
    return {code: set(map(int, statuses.split(","))) for code, statuses in table}


def schema(name: str) -> dict[str, Any]:
    """Return a named schema of an object: an `allOf` becomes one set of properties."""
    declared = document()["components"]["schemas"][name]
    merged: dict[str, Any] = {"properties": {}, "required": []}
    for part in declared.get("allOf", [declared]):
        merged["properties"] |= part["properties"]
        merged["required"] += part["required"]
    return merged


def example(name: str) -> dict[str, Any]:
    """Return an object with each member of a named schema."""
    members = schema(name)["properties"].items()
    return {member: declared["examples"][0] for member, declared in members}


def problems(
    operation: Operation | None,
    status: int,
    headers: Mapping[str, str],
    body: str | bytes,
    *,
    in_process: bool = False,
) -> list[str]:
    """List where a response differs from the declared one, and what no document can express.

    Without an operation it is that of an unknown route: a 404 with an Error. `in_process`: no
    server has added headers. Raises ValueError for a body that is not JSON.
    """
    # The headers that every error has, and the Error object.
    unknown_route = {404: document()["components"]["responses"]["InternalError"]}
    response = (operation.responses if operation else unknown_route).get(status)
    if response is None:
        return [f"{status} is not declared"]
    declared = response.get("headers", {}).items()
    schema_of_headers = {
        "properties": {name.lower(): header["schema"] for name, header in declared},
        "required": [
            name.lower() for name, header in declared if header.get("required")
        ],
        "additionalProperties": not in_process,
    }
    received: dict[str, Any] = {
        name.lower(): int(text) if text.isdecimal() else text
        for name, text in headers.items()
    }
    if "content" not in response:
        return _differences(schema_of_headers, received) + ["a body"] * bool(body)
    media_type = received.pop("content-type", "")
    content = response["content"][media_type]["schema"]
    # The document leaves members open, for the sake of clients; the service uses none but these.
    closed = {"unevaluatedProperties": False}
    if "items" in content:
        content = content | {"items": content["items"] | closed}
    value = from_json(body, allow_inf_nan=False)
    found = _differences(schema_of_headers, received)
    found += _differences(content | closed, value)
    if status >= 400:
        known = statuses_of_codes().get(value["code"], set())
        if status not in known or value["status"] != status:
            found.append(f"{value} is not an Error of {status}")
    return found


def _differences(schema: dict[str, Any], value: Any) -> list[str]:
    """List where a value differs from a schema."""
    errors = Draft202012Validator(schema).iter_errors(value)
    return [f"{error.json_path}: {error.message[:500]}" for error in errors]
