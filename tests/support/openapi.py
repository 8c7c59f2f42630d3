"""Read openapi.yaml for tests: operations, schemas, and whether it declares a response."""

import re
from collections.abc import Mapping
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic_core import from_json

PATH = Path(__file__).parents[2] / "openapi.yaml"


@cache
def document() -> dict[str, Any]:
    """Read the document, with its references resolved."""
    loaded = yaml.safe_load(PATH.read_text("utf-8"))

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


PARAMETERS: dict[str, Any] = document()["components"]["parameters"]
LIMIT: dict[str, int] = PARAMETERS["Limit"]["schema"]
"""The `minimum`, `maximum` and `default` of a page's size."""
SCHEMAS: dict[str, Any] = document()["components"]["schemas"]
STATUSES: list[str] = SCHEMAS["PetStatus"]["enum"]
TABLE: str = SCHEMAS["Error"]["properties"]["code"]["description"]
CODES = dict(re.findall(r"^\| `(\w+)` \| ([\d, ]+) \|", TABLE, re.MULTILINE))
"""The statuses of each `code` of an Error, such as `500, 502`."""


class Operation(NamedTuple):
    """An operation: operationId, method in capitals, path template, and responses by status."""

    id: str
    method: str
    path: str
    responses: dict[int, Any]

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
            responses = {
                int(status): response
                for status, response in operation["responses"].items()
                if status != "default"
            }
            name = operation["operationId"]
            found.append(Operation(name, method.upper(), path, responses))
    return tuple(found)


each_operation = pytest.mark.parametrize(
    "operation", operations(), ids=[operation.id for operation in operations()]
)
"""Runs a test with each operation."""


def find(method: str, path: str) -> Operation | None:
    """Return the operation of a request by its percent-encoded path; None for an unknown route.

    A slash at the end of the path does not count.
    """
    for each in operations():
        # Whether an encoded slash splits the path is up to the server.
        template = each.with_id("((?!%2[Ff])[^/])+")
        if each.method == method and re.fullmatch(f"{template}/?", path):
            return each
    return None


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
    received = {
        name.lower(): int(text) if text.isdecimal() else text
        for name, text in headers.items()
    }
    value: Any = body
    schema_of_body = {"maxLength": 0}
    if "content" in response:
        media_type = received.pop("content-type", None)
        schema_of_body = response["content"][media_type]["schema"]
        value = from_json(body, allow_inf_nan=False)
    schema = {"properties": {"headers": schema_of_headers, "body": schema_of_body}}
    differences = Draft202012Validator(schema).iter_errors(
        {"headers": received, "body": value}
    )
    found = [f"{each.json_path}: {each.message[:500]}" for each in differences]
    if status >= 400:
        more = value.keys() - SCHEMAS["Error"]["properties"]
        found += [f"an Error has no {name}" for name in more]
        known = CODES.get(value["code"], "")
        if str(status) not in known or value["status"] != status:
            found.append(f"{value} is not an Error of {status}")
    return found
