"""Read openapi.yaml for tests: operations, schemas, and whether it declares a response."""

import re
from collections.abc import Mapping
from functools import cache, reduce
from operator import getitem
from typing import Any, NamedTuple

import pytest
import yaml
from jsonschema import Draft202012Validator, validators
from pydantic_core import from_json

from tools import ROOT

# Class names, paths, libraries and stores, none of which an error message may show.
_INTERNALS = (
    r"(?i)Traceback|pydantic|boto|dynamodb|lambda|\.py\b|/var/|/opt/"
    r"|Exception|[a-z]Error\b|errors\.|<class"
)
# JSON Schema takes 1.0 for an integer; programs in many languages do not.
_Validator = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: type(value) is int
    ),
)


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
        template = re.sub(r"{\w+}", "((?!%2[Ff])[^/])+", each.path)
        if each.method == method and re.fullmatch(template, path):
            return each
    return None


def examples(response: Any) -> list[Any]:
    """Return the examples of a response's body."""
    examples = response["content"]["application/json"]["examples"]
    return [example["value"] for example in examples.values()]


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
    received: dict[str, Any] = {"headers": {}}
    for name, text in headers.items():
        value = int(text) if text.isdecimal() else text
        received["headers"][name.lower()] = value
    properties = {"headers": _headers(response, others=not in_process)}
    if "content" in response:
        received["body"] = from_json(body, allow_inf_nan=False)
        declared = response["content"]["application/json"]["schema"]
        properties["body"] = _body(declared, status)
    elif body:
        return ["a body where none is declared"]
    found = _Validator({"properties": properties}).iter_errors(received)
    return [f"{error.json_path}: {error.message}" for error in found]


def _headers(response: dict[str, Any], *, others: bool) -> dict[str, Any]:
    """Return a schema of a response's headers, by their names in lower case."""
    properties: dict[str, Any] = {"content-type": {"const": "application/json"}}
    required = ["content-type"] if "content" in response else []
    for name, header in response.get("headers", {}).items():
        properties[name.lower()] = header["schema"]
        if header.get("required"):
            required.append(name.lower())
    return {
        "properties": properties,
        "required": required,
        "additionalProperties": others,
    }


def _body(declared: dict[str, Any], status: int) -> dict[str, Any]:
    """Return a stricter schema for a body, with the codes of its status."""
    if declared.get("type") == "array":
        return declared | {"items": _body(declared["items"], status)}
    # The document leaves members open, for the sake of clients; the service uses none but these.
    strict = declared | {"unevaluatedProperties": False}
    if status < 400:
        return strict
    codes = statuses_of_codes().items()
    error = {
        "code": {"enum": [code for code, statuses in codes if status in statuses]},
        "message": {"pattern": r"\S", "not": {"pattern": _INTERNALS}},
        "status": {"const": status},
    }
    return {"allOf": [strict, {"properties": error}]}
