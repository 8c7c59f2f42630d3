"""openapi.yaml for tests: its parts with references followed, and whether values and answers are what it declares."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from tools import ROOT

_URI = "urn:openapi"


@cache
def document() -> dict[str, Any]:
    """Read the document, once."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "openapi.yaml").read_text("utf-8"))
    return loaded


@cache
def _registry() -> Registry[Any]:
    registry: Registry[Any] = Registry().with_resource(_URI, DRAFT202012.create_resource(document()))
    return registry


def follow(value: Any) -> Any:
    """Return what a `$ref` stands for; anything else as it is."""
    while isinstance(value, dict) and "$ref" in value:
        target = document()
        for step in value["$ref"].removeprefix("#/").split("/"):
            target = target[step.replace("~1", "/").replace("~0", "~")]
        value = target
    return value


def schema(name: str) -> dict[str, Any]:
    """Return a named schema as one object: an `allOf` becomes one set of properties."""
    merged: dict[str, Any] = {"properties": {}, "required": []}
    named = follow({"$ref": f"#/components/schemas/{name}"})
    for part in map(follow, named.get("allOf", [named])):
        merged["properties"] |= {key: follow(value) for key, value in part["properties"].items()}
        merged["required"] += part.get("required", [])
    return merged


def is_valid(value: object, schema: Mapping[str, Any]) -> bool:
    """Tell whether a value is valid against a schema of the document (JSON Schema 2020-12)."""
    return not errors(value, schema)


def errors(value: object, schema: Mapping[str, Any]) -> list[str]:
    """List what is wrong with a value by a schema of the document; references in it are those of the document."""
    validator = Draft202012Validator(_absolute(schema), registry=_registry())
    return [error.message for error in validator.iter_errors(value)]


def _absolute(schema: Any) -> Any:
    """Put the document's URI in front of references, so that they can be followed from outside of it."""
    if isinstance(schema, Mapping):
        return {key: f"{_URI}{value}" if key == "$ref" else _absolute(value) for key, value in schema.items()}
    return [_absolute(item) for item in schema] if isinstance(schema, list) else schema


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield method (in capitals), path and object of every operation."""
    for path, item in document()["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def declared(method: str, path: str, status: int) -> dict[str, Any]:
    """Return the response object that is declared for an answer.

    Args:
        method: In capitals.
        path: As in the document, such as `/pets/{petId}`.
        status: The HTTP status.

    Raises:
        KeyError: The document does not declare this answer.
    """
    response: dict[str, Any] = follow(document()["paths"][path][method.lower()]["responses"][str(status)])
    return response


def problems_of_answer(method: str, path: str, status: int, headers: Mapping[str, str], body: object) -> list[str]:
    """List where an answer differs from the declared one: body, required headers, values and names of headers."""
    response = declared(method, path, status)
    problems = errors(body, response["content"]["application/json"]["schema"])
    given = {name.lower(): value for name, value in headers.items()}
    media_type = given.pop("content-type", None)
    if media_type != "application/json":
        problems.append(f"Content-Type is {media_type}")
    for name, reference in response["headers"].items():
        header = follow(reference)
        value: str | int | None = given.pop(name.lower(), None)
        if value is None:
            if header.get("required"):
                problems.append(f"{name} is missing")
            continue
        if header["schema"]["type"] == "integer":
            value = int(value)
        problems += [f"{name}: {error}" for error in errors(value, header["schema"])]
    return problems + [f"{name} is not declared" for name in given]
