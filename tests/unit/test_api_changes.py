"""What counts as breaking a client of the last release, and what does not."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tools import ROOT
from tools.api_changes import breaking_changes

Document = dict[str, Any]


@pytest.fixture
def document() -> Document:
    loaded: Document = yaml.safe_load((ROOT / "openapi.yaml").read_text())
    return loaded


def small(schema: Document, *, where: str) -> Document:
    """Make a document with one operation that takes or answers a schema."""
    content = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/It"}}}}
    operation: Document = {"responses": {"200": content if where == "response" else {}}}
    if where == "request":
        operation["requestBody"] = content
    return {"paths": {"/it": {"post": operation}}, "components": {"schemas": {"It": schema}}}


def test_the_same_document_breaks_nothing(document: Document) -> None:
    assert breaking_changes(document, copy.deepcopy(document)) == []


def _remove_path(document: Document) -> None:
    del document["paths"]["/pets/{petId}"]


def _remove_method(document: Document) -> None:
    del document["paths"]["/pets"]["post"]


def _remove_response(document: Document) -> None:
    del document["paths"]["/pets"]["get"]["responses"]["200"]


def _new_required_parameter(document: Document) -> None:
    parameter = {"in": "query", "name": "colour", "required": True, "schema": {"type": "string"}}
    document["paths"]["/pets"]["get"]["parameters"].append(parameter)


def _remove_parameters(document: Document) -> None:
    document["paths"]["/pets"]["get"]["parameters"] = []


def _drop_security(document: Document) -> None:
    document["security"] = []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_remove_path, "GET /pets/{petId}: removed"),
        (_remove_method, "POST /pets: removed"),
        (_remove_response, "GET /pets: response 200 removed"),
        (_new_required_parameter, "GET /pets: query parameter colour became required"),
        (_remove_parameters, "GET /pets: query parameter limit removed"),
        (_drop_security, "GET /pets: security changed"),
    ],
)
def test_a_broken_operation_is_told(document: Document, change: Callable[[Document], None], told: str) -> None:
    changed = copy.deepcopy(document)
    change(changed)

    assert told in breaking_changes(document, changed)


def test_a_new_operation_and_an_optional_parameter_break_nothing(document: Document) -> None:
    changed = copy.deepcopy(document)
    changed["paths"]["/shops"] = {"get": {"responses": {"200": {}}}}
    changed["paths"]["/pets"]["get"]["parameters"].append({"in": "query", "name": "x", "schema": {"type": "string"}})

    assert breaking_changes(document, changed) == []


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}

# Old schema, new schema, what breaks in a request, what breaks in a response.
SCHEMAS = [
    ({"type": "integer"}, {"type": "string"}, "type allows less", "type can be more"),
    ({"type": "integer"}, {"type": "number"}, None, "type can be more"),
    ({"type": "string"}, {"type": ["string", "null"]}, None, "type can be more"),
    ({}, {"type": "string"}, "type allows less", None),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, "enum allows less", None),
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, None, "enum can be more"),
    ({"enum": ["a"]}, {}, None, "enum can be more"),
    ({"const": 1}, {"const": 2}, "enum allows less", "enum can be more"),
    ({"maximum": 9}, {"maximum": 8}, "maximum allows less", None),
    ({"maximum": 9}, {"maximum": 10}, None, "maximum can be more"),
    ({}, {"maxLength": 5}, "maxLength allows less", None),
    ({"minimum": 1}, {"minimum": 2}, "minimum allows less", None),
    ({"minimum": 1}, {"minimum": 0}, None, "minimum can be more"),
    ({"pattern": "a"}, {"pattern": "b"}, "pattern allows less", "pattern can be more"),
    (OBJECT, OBJECT | {"required": ["a"]}, "a became required", None),
    (OBJECT | {"required": ["a"]}, OBJECT, None, "a became optional"),
    (OBJECT, {"type": "object"}, None, "a removed"),
    (OBJECT, OBJECT | {"additionalProperties": False}, "other members became forbidden", None),
    ({"type": "object"}, OBJECT, None, None),
    ({"items": {"type": "string"}}, {"items": {"type": "integer"}}, "items: type allows", "items: type can be"),
    ({"oneOf": [{"type": "string"}]}, {"oneOf": [{"type": "integer"}]}, "composition", "composition"),
    ({"description": "one"}, {"description": "another"}, None, None),
]


@pytest.mark.parametrize(("old", "new", "request_", "response"), SCHEMAS)
def test_a_schema_breaks_by_its_direction(
    old: Document, new: Document, request_: str | None, response: str | None
) -> None:
    for where, expected in (("request", request_), ("response", response)):
        changes = breaking_changes(small(old, where=where), small(new, where=where))
        if expected is None:
            assert changes == []
        else:
            assert len(changes) == 1
            assert expected in changes[0]


def test_a_schema_that_contains_itself_is_compared_once() -> None:
    tree: Document = {"type": "object", "properties": {"child": {"$ref": "#/components/schemas/It"}}}
    changed: Document = tree | {"required": ["child"]}

    assert len(breaking_changes(small(tree, where="request"), small(changed, where="request"))) == 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"required": True}, {"required": False}, "header ETag became optional"),
        ({"required": True}, None, "header ETag removed"),
        ({"schema": {"type": "string"}}, {"schema": {"type": "integer"}}, "header ETag: type can be more"),
    ],
)
def test_headers_of_answers_count(old: Document, new: Document | None, told: str) -> None:
    def with_header(header: Document | None) -> Document:
        response = {"headers": {"ETag": header}} if header else {}
        return {"paths": {"/it": {"get": {"responses": {"200": response}}}}}

    (change,) = breaking_changes(with_header(old), with_header(new))

    assert told in change
