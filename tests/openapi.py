"""Read openapi.yaml for tests: its operations, its schemas, and whether a response is one that it declares."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from jsonschema import Draft202012Validator, validators
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from tools import ROOT

_URI = "urn:openapi"
_INTERNALS = re.compile(
    r"Traceback|pydantic|boto|dynamodb|lambda|\.py\b|/var/|/opt/|Exception|[a-z]Error\b|errors\.|<class", re.IGNORECASE
)
"""Class names, paths, libraries and stores, none of which an error message may show."""
# JSON Schema takes 1.0 for an integer; programs in many languages do not.
_Validator = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)


@cache
def document() -> dict[str, Any]:
    """Read the document, once."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "openapi.yaml").read_text("utf-8"))
    return loaded


@dataclass(frozen=True)
class Operation:
    """An operation: its operationId, its method in capitals, its path template, and its object in the document."""

    id: str
    method: str
    path: str
    object: dict[str, Any]

    @property
    def statuses(self) -> set[int]:
        """The statuses that are declared."""
        return {int(status) for status in self.object["responses"] if status != "default"}

    def response(self, status: int) -> dict[str, Any]:
        """Return the response object of a status; KeyError if there is none."""
        response: dict[str, Any] = follow(self.object["responses"][str(status)])
        return response


@cache
def operations() -> tuple[Operation, ...]:
    """List every operation."""
    return tuple(
        Operation(each["operationId"], method.upper(), path, each)
        for path, item in document()["paths"].items()
        for method, each in item.items()
    )


def find(method: str, path: str) -> Operation | None:
    """Find the operation of a request by its path below the base URL, percent-encoded; None for an unknown route."""
    for each in operations():
        # An encoded slash: whether it splits the path is the server's own business.
        if each.method == method and re.fullmatch(re.sub(r"{\w+}", "((?!%2[Ff])[^/])+", each.path), path):
            return each
    return None


def examples(media: Any) -> list[Any]:
    """Return the examples of the body of a request or response object."""
    named = follow(media)["content"]["application/json"]["examples"]
    return [follow(example)["value"] for example in named.values()]


@cache
def statuses_of_codes() -> dict[str, set[int]]:
    """Return the statuses that each `code` of an Error goes with: the table in the description of `code`."""
    table = re.findall(
        r"^\| `(\w+)` \| ([\d, ]+) \|", schema("Error")["properties"]["code"]["description"], re.MULTILINE
    )
    return {code: {int(status) for status in statuses.split(",")} for code, statuses in table}


def follow(value: Any) -> Any:
    """Return what a `$ref` stands for; anything else as it is."""
    while isinstance(value, dict) and "$ref" in value:
        target = document()
        for step in value["$ref"].removeprefix("#/").split("/"):
            target = target[step.replace("~1", "/").replace("~0", "~")]
        value = target
    return value


def schema(name: str) -> dict[str, Any]:
    """Return a named schema of an object: an `allOf` becomes one set of properties."""
    return _merged({"$ref": f"#/components/schemas/{name}"})


def _merged(named: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {"properties": {}, "required": []}
    for part in map(follow, follow(named).get("allOf", [follow(named)])):
        merged["properties"] |= {key: follow(value) for key, value in part["properties"].items()}
        merged["required"] += part.get("required", [])
    return merged


def errors(value: object, schema: Mapping[str, Any]) -> list[str]:
    """List what is wrong with a value by a schema of the document (JSON Schema 2020-12), with references into it."""
    return [error.message for error in _Validator(_absolute(schema), registry=_registry()).iter_errors(value)]


@cache
def _registry() -> Registry[Any]:
    registry: Registry[Any] = Registry().with_resource(_URI, DRAFT202012.create_resource(document()))
    return registry


def _absolute(schema: Any) -> Any:
    """Put the document's URI in front of references, so that they can be followed from outside of it."""
    if isinstance(schema, Mapping):
        return {key: f"{_URI}{value}" if key == "$ref" else _absolute(value) for key, value in schema.items()}
    return [_absolute(item) for item in schema] if isinstance(schema, list) else schema


# -- responses ---------------------------------------------------------------------------------------------------------


def strict_json(text: str | bytes) -> Any:
    """Parse JSON as RFC 8259 defines it: no NaN, no Infinity, and no member twice; ValueError for anything else."""

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
    """List where a response differs from the declared one: status, headers, body, and what no document can express.

    Args:
        operation: None for a route that the document does not have, which is answered with an Error of 404.
        status: The HTTP status.
        headers: By name, in any case.
        body: As received; empty for HEAD.
        in_process: No server has added headers of its own, so each must be declared.
    """
    if operation is None:
        # A response object with the headers of every error and the Error object.
        response = document()["components"]["responses"]["InternalError"] if status == 404 else None
    else:
        response = operation.response(status) if status in operation.statuses else None
    if response is None:
        return [f"{status} is not declared"]
    given = {name.lower(): value for name, value in headers.items()}
    media_type = given.pop("content-type", None)
    found = list(_problems_of_headers(response.get("headers", {}), given, undeclared=in_process))
    if "content" not in response:
        return [*found, "a body where none is declared"] if body else found
    if media_type != "application/json":
        found.append(f"Content-Type is {media_type}")
    try:
        value = strict_json(body)
    except ValueError as error:
        return [*found, f"the body is not JSON: {error}"]
    found += _problems_of_body(value, response["content"]["application/json"]["schema"])
    return found if found or status < 400 else [*_problems_of_error(value, status)]


def _problems_of_headers(declared: dict[str, Any], given: dict[str, str], *, undeclared: bool) -> Iterator[str]:
    for name, reference in declared.items():
        header = follow(reference)
        text = given.pop(name.lower(), None)
        if text is None:
            if header.get("required"):
                yield f"{name} is missing"
            continue
        value = int(text) if header["schema"]["type"] == "integer" and text.isdecimal() else text
        yield from (f"{name}: {error}" for error in errors(value, header["schema"]))
    if undeclared:
        yield from (f"{name} is not declared" for name in given)


def _problems_of_body(value: Any, schema: dict[str, Any]) -> Iterator[str]:
    yield from errors(value, schema)
    # The document leaves members open, for the sake of clients; the service answers no other than it names.
    of_one = follow(schema).get("items", schema)
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict) and (strange := each.keys() - _merged(of_one)["properties"].keys()):
            yield f"the members {strange} are not declared"


def _problems_of_error(error: dict[str, Any], status: int) -> Iterator[str]:
    # What API Gateway makes may lack members, where the document says so.
    known = statuses_of_codes().get(error["code"], set()) if "code" in error else {status}
    if error.get("status", status) != status or status not in known:
        yield f"{error} with the status {status}"
    if not error["message"].strip() or _INTERNALS.search(error["message"]):
        yield f"the message is empty, or shows internals: {error}"
