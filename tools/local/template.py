"""Reads templates, and finds the parts that run on one machine.

`load_template` returns the parts of template.yaml that the local service uses. `read_stack`
evaluates a whole template, but keeps outputs whose condition is false.

`${!...}`, and intrinsic functions that `_evaluate` lacks, stay as they are.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from starlette.routing import compile_path

from tools import ROOT

REGION = "us-east-1"
_STACK = "animal-store-local"
FUNCTION, LAYER = "AWS::Serverless::Function", "AWS::Serverless::LayerVersion"
_TABLE_PARAMETERS = (
    "AttributeDefinitions",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "KeySchema",
)


class Route(NamedTuple):
    """The function that answers requests for a resource with an HTTP method."""

    resource: str  # such as /v1/pets/{petId}
    method: str
    function: str
    pattern: re.Pattern[str]  # matches the paths of the resource


@dataclass
class Template:
    """The parts of a template that the local service uses.

    `functions` maps each function's logical id to its properties. `tables` maps each table's
    logical id to the members of a CreateTable request.
    """

    stage: str
    environment: dict[str, str]
    gateway_responses: dict[str, Any]
    binary_media_types: list[str]
    functions: dict[str, dict[str, Any]]
    routes: list[Route]
    tables: dict[str, dict[str, Any]]
    # The whole template, with intrinsic functions in their long form. Change only a copy of it,
    # because it is cached.
    document: dict[str, Any] = field(repr=False)

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the route of a request and its path parameters, or None if no route matches.

        As in API Gateway's REST APIs, path parameters stay percent-encoded, and a slash at the end
        of the path is ignored:
        https://github.com/aws/aws-sam-cli/issues/771
        https://github.com/aws-powertools/powertools-lambda-python/issues/1552
        """
        path = path.removesuffix("/")
        for route in self.routes:
            match = route.pattern.match(path)
            if match and route.method == method:
                return route, match.groupdict()
        return None


# PyYAML's loader that is written in Python, yaml.SafeLoader, would take several times as long.
class _Loader(yaml.CSafeLoader):
    """A YAML loader that accepts the short forms of intrinsic functions, such as `!Ref`."""


def _long_form(loader: Any, name: str, node: Any) -> dict[str, Any]:
    value = node.value
    if isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    return {name if name == "Ref" else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _long_form)


@cache
def _read(path: Path) -> dict[str, Any]:
    """Read a template; each intrinsic function gets its long form, such as `{"Ref": "Stage"}`."""
    with path.open("rb") as file:
        document: dict[str, Any] = yaml.load(file, _Loader)  # noqa: S506 - is safe
    return document


@cache
def read_stack(file: str, **names: str) -> dict[str, Any]:
    """Return a template after its conditions and intrinsic functions have been evaluated.

    Args:
        file: The template's path in the checkout.
        names: The values of parameters and other names. A parameter outside `names` has its
            default, if any. A reference to any other name, such as `Role.Arn`, becomes the name
            itself.
    """
    template = _read(ROOT / file)
    values: dict[str, Any] = {"AWS::NoValue": None}
    for name, parameter in template["Parameters"].items():
        values[name] = parameter.get("Default", name)
    values |= names
    values |= _resolve(template.get("Conditions", {}), values)
    stack: dict[str, Any] = _resolve(template, values)
    for name, resource in template["Resources"].items():
        if not values.get(resource.get("Condition"), True):
            del stack["Resources"][name]
    return stack


def _resolve(node: Any, values: Mapping[str, Any]) -> Any:
    """Replace each intrinsic function in a node of a template by its value."""
    if isinstance(node, list):
        return [_resolve(element, values) for element in node]
    if not isinstance(node, dict):
        return node
    members = {}
    for name, member in node.items():
        value = _resolve(member, values)
        if value is not None:  # CloudFormation removes a property that is AWS::NoValue
            members[name] = value
    return _evaluate(members, values)


def _evaluate(node: dict[str, Any], values: Mapping[str, Any]) -> Any:
    """Return the value of an intrinsic function; return any other node unchanged."""
    result: Any = node
    match node:
        case {"Ref": str(name)} | {"Fn::GetAtt": str(name)}:
            result = values.get(name, name)
        case {"Fn::Sub": str(text)}:
            result = re.sub(
                r"\$\{([\w:.]+)\}",
                lambda match: str(values.get(match[1], match[1])),
                text,
            )
        case {"Fn::If": [str(condition), if_true, if_false]}:
            result = if_true if values.get(condition) else if_false
        case {"Fn::Equals": [left, right]}:
            result = str(left) == right
        case {"Fn::Not": [condition]}:
            result = not condition
    return result


def properties_by_name(stack: Any, resource_type: str) -> dict[str, Any]:
    """Return the properties of each resource of a type, by the resource's logical id."""
    return {
        name: resource.get("Properties", {})
        for name, resource in stack["Resources"].items()
        if resource["Type"] == resource_type
    }


def load_template(stage: str = "local") -> Template:
    """Read template.yaml for a stage; other parameters have their defaults."""
    document = _read(ROOT / "template.yaml")
    values = {name: f"{_STACK}-{name}" for name in document["Resources"]}
    values |= {"AWS::Region": REGION, "AWS::StackName": _STACK, "Stage": stage}
    stack = read_stack("template.yaml", **values)
    shared_properties = stack["Globals"]["Function"]
    (api,) = properties_by_name(stack, "AWS::Serverless::Api").values()
    functions: dict[str, dict[str, Any]] = {}
    routes: list[Route] = []
    for name, properties in properties_by_name(stack, FUNCTION).items():
        functions[name] = shared_properties | properties
        for event in properties["Events"].values():
            if event["Type"] == "Api":
                route = event["Properties"]
                pattern, _, _ = compile_path(str(route["Path"]))
                method = route["Method"].upper()
                routes.append(Route(route["Path"], method, name, pattern))
    tables = {}
    for name, table in properties_by_name(stack, "AWS::DynamoDB::Table").items():
        tables[name] = {key: table[key] for key in _TABLE_PARAMETERS if key in table}
        tables[name]["TableName"] = values[name]
    return Template(
        api["StageName"],
        shared_properties["Environment"]["Variables"],
        api["GatewayResponses"],
        # The template writes "~1" for the slash in a media type, as JSON pointers do.
        [name.replace("~1", "/") for name in api["BinaryMediaTypes"]],
        functions,
        # In this order, a fixed segment comes before a parameter: "{" sorts after letters.
        sorted(routes),
        tables,
        document,
    )
