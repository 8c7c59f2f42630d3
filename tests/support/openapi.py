"""Read openapi.yaml for tests: operations, schemas, and whether it declares a response."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, reduce
from operator import getitem
from typing import Any, NamedTuple

import pytest
import yaml
from jsonschema import Draft202012Validator, validators

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
    """Read the document, once."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "openapi.yaml").read_text("utf-8"))
    return loaded


class Operation(NamedTuple):
    """An operation: operationId, method in capitals, path template, and object in the document."""

    id: str
    method: str
    path: str
    object: dict[str, Any]

    @property
    def statuses(self) -> set[int]:
        """The statuses that are declared."""
        return {
            int(status) for status in self.object["responses"] if status != "default"
        }

    def response(self, status: int) -> Any:
        """Return the response object of a status; KeyError if there is none."""
        return follow(self.object["responses"][str(status)])


@cache
def operations() -> tuple[Operation, ...]:
    """List every operation."""
    return tuple(
        Operation(each["operationId"], method.upper(), path, each)
        for path, item in document()["paths"].items()
        for method, each in item.items()
        if method != "parameters"
    )


each_operation = pytest.mark.parametrize(
    "operation", operations(), ids=[operation.id for operation in operations()]
)
"""Runs a test with each operation."""


def find(method: str, path: str) -> Operation | None:
    """Return the operation of a request by its percent-encoded path; None for an unknown route."""
    for each in operations():
        # An encoded slash: whether it splits the path is the server's own business.
        template = re.sub(r"{\w+}", "((?!%2[Ff])[^/])+", each.path)
        if each.method == method and re.fullmatch(template, path):
            return each
    return None


def patterns(part: Any) -> Iterator[str]:
    """Find every regular expression in a part of the document."""
    if isinstance(part, dict):
        if isinstance(part.get("pattern"), str):
            yield part["pattern"]
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from patterns(each)


def examples(media: Any) -> list[Any]:
    """Return the examples of the body of a request or response object."""
    return [
        follow(example)["value"]
        for example in follow(media)["content"]["application/json"]["examples"].values()
    ]


@cache
def statuses_of_codes() -> dict[str, set[int]]:
    """Return the statuses of each `code` of an Error: the table in its description."""
    description = schema("Error")["properties"]["code"]["description"]
    table = re.findall(r"^\| `(\w+)` \| ([\d, ]+) \|", description, re.MULTILINE)
    return {
        code: {int(status) for status in statuses.split(",")}
        for code, statuses in table
    }


def follow(value: Any) -> Any:
    """Return what a `$ref` stands for; anything else as it is."""
    if not (isinstance(value, dict) and "$ref" in value):
        return value
    return follow(reduce(getitem, value["$ref"].split("/")[1:], document()))


def schema(name: str) -> dict[str, Any]:
    """Return a named schema of an object: an `allOf` becomes one set of properties."""
    return _merged(document()["components"]["schemas"][name])


def _merged(declared: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for part in map(follow, declared.get("allOf", [declared])):
        for name, value in part["properties"].items():
            properties[name] = follow(value)
        required += part.get("required", [])
    return {"properties": properties, "required": required}


def errors(value: object, schema: Mapping[str, Any]) -> list[str]:
    """List what is wrong with a value by a schema of the document (JSON Schema 2020-12)."""
    whole = {
        **schema,
        "components": document()["components"],
    }  # where the references lead
    return [error.message for error in _Validator(whole).iter_errors(value)]


def strict_json(text: str | bytes) -> Any:
    """Parse JSON as RFC 8259 defines it: no NaN, and no member twice; ValueError for others."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    def unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(members)) != len(members):
            raise ValueError(f"a member is given twice: {members}")
        return dict(members)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


def problems(
    operation: Operation | None,
    status: int,
    headers: Mapping[str, str],
    body: str | bytes,
    *,
    in_process: bool = False,
) -> list[str]:
    """List where a response differs from the declared one, and what no document can express.

    Without an operation it is one of an unknown route: an Error of 404. `in_process`: no server has
    added headers.
    """
    if status not in (operation.statuses if operation else {404}):
        return [f"{status} is not declared"]
    # A response object with the headers of every error and the Error object.
    response = (
        operation.response(status)
        if operation
        else document()["components"]["responses"]["InternalError"]
    )
    given = {name.lower(): value for name, value in headers.items()}
    media_type = given.pop("content-type", None)
    found = list(
        _problems_of_headers(response.get("headers", {}), given, undeclared=in_process)
    )
    if "content" not in response:
        return [*found, "a body where none is declared"] if body else found
    if media_type != "application/json":
        found.append(f"Content-Type is {media_type}")
    try:
        value = strict_json(body)
    except ValueError as error:
        return [*found, f"the body is not JSON: {error}"]
    return found + list(
        _problems_of_body(
            value, status, response["content"]["application/json"]["schema"]
        )
    )


def _problems_of_headers(
    declared: dict[str, Any], given: dict[str, str], *, undeclared: bool
) -> Iterator[str]:
    for name, reference in declared.items():
        header = follow(reference)
        text = given.pop(name.lower(), None)
        if text is None:
            if header.get("required"):
                yield name + " is missing"
            continue
        is_number = header["schema"]["type"] == "integer" and text.isdecimal()
        for error in errors(int(text) if is_number else text, header["schema"]):
            yield name + ": " + error
    if undeclared:
        for name in given:
            yield name + " is not declared"


def _problems_of_body(value: Any, status: int, schema: dict[str, Any]) -> Iterator[str]:
    if wrong := errors(value, schema):
        yield from wrong
        return
    # The document leaves members open, for the sake of clients; the service uses none but these.
    members = _merged(follow(follow(schema).get("items", schema)))["properties"].keys()
    for each in value if isinstance(value, list) else [value]:
        if strange := each.keys() - members:
            yield f"the members {strange} are not declared"
    if status >= 400:
        # What API Gateway makes may lack members, where the document says so.
        allowed = (
            statuses_of_codes().get(value["code"], set())
            if "code" in value
            else {status}
        )
        if value.get("status", status) != status or status not in allowed:
            yield f"{value} with the status {status}"
        if not value["message"].strip() or re.search(_INTERNALS, value["message"]):
            yield f"the message is empty, or shows internals: {value}"
