"""Reads the parts of template.yaml that run on one machine, and ignores the rest.

The only intrinsic function in these parts is `Ref`. Any other intrinsic function raises
CommandError.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from re import Pattern
from typing import Any, NamedTuple

import yaml
from starlette.routing import compile_path

from tools import CommandError
from tools.local.firewall import Firewall

REGION = "us-east-1"
_STACK = "animal-store-local"
FUNCTION, LAYER = "AWS::Serverless::Function", "AWS::Serverless::LayerVersion"
_CREATE_TABLE = (
    "AttributeDefinitions",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "KeySchema",
)


class Route(NamedTuple):
    """A resource and an HTTP method, and the logical id of the function that answers requests."""

    resource: str  # such as /v1/pets/{petId}
    method: str
    function: str
    pattern: Pattern[str]  # matches the paths of the resource


@dataclass
class Function:
    """An AWS::Serverless::Function: the folder of its code, and its handler."""

    code: Path
    handler: str


@dataclass
class Template:
    """The parts of a template that the local service uses.

    The keys of `functions` and `tables` are logical ids. Each value of `tables` has the members of
    a CreateTable request.
    """

    stage: str
    environment: dict[str, str]
    gateway_responses: dict[str, Any]
    binary_media_types: list[str]
    functions: dict[str, Function]
    routes: list[Route]
    layers: list[Path]
    tables: dict[str, dict[str, Any]]
    firewall: Firewall | None

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return a request's route and path parameters; raise CommandError if no route matches.

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
        raise CommandError(f"no function answers {method} {path}")


# PyYAML's loader in Python, yaml.SafeLoader, would take ten times as long.
class _Loader(yaml.CSafeLoader):
    """A YAML loader that accepts the short forms of intrinsic functions, such as `!Ref`."""


def _long_form(loader: Any, name: str, node: Any) -> dict[str, Any]:
    value = node.value
    if isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    return {name if name == "Ref" else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _long_form)


def read(path: Path) -> Any:
    """Read a template; each intrinsic function gets its long form, such as `{"Ref": "Stage"}`."""
    with path.open("rb") as file:
        return yaml.load(file, _Loader)  # noqa: S506 - is safe


def load(path: Path, parameters: Mapping[str, str]) -> Template:
    """Read a SAM template; each parameter that is not in `parameters` has its default."""
    folder, document = path.parent, read(path)
    declared_parameters = document["Parameters"]
    references = {
        name: declared_parameters[name].get("Default") for name in declared_parameters
    }
    references |= {name: f"{_STACK}-{name}" for name in document["Resources"]}
    references |= {"AWS::Region": REGION, "AWS::StackName": _STACK, **parameters}
    resolve = partial(_resolve, references)

    def properties(resource_type: str) -> dict[str, dict[str, Any]]:
        """Return the properties of each resource of a type, by its logical id."""
        return {
            name: resource["Properties"]
            for name, resource in document["Resources"].items()
            if resource["Type"] == resource_type
        }

    shared_properties = document["Globals"]["Function"]
    (api,) = properties("AWS::Serverless::Api").values()
    functions: dict[str, Function] = {}
    routes: list[Route] = []
    for name, function_properties in properties(FUNCTION).items():
        function = shared_properties | function_properties
        functions[name] = Function(
            folder / resolve(function["CodeUri"]),
            resolve(function["Handler"]),
        )
        for event in function["Events"].values():
            if event["Type"] == "Api":
                route = resolve(event["Properties"])
                pattern, _, _ = compile_path(route["Path"])
                method = route["Method"].upper()
                routes.append(Route(route["Path"], method, name, pattern))
    tables = {}
    for name, table in properties("AWS::DynamoDB::Table").items():
        tables[name] = {
            key: resolve(table[key]) for key in _CREATE_TABLE if key in table
        }
        tables[name]["TableName"] = references[name]
    firewall = None
    if parameters.get("Waf") == "true":
        (web_acl,) = properties("AWS::WAFv2::WebACL").values()
        firewall = Firewall(resolve(web_acl))
    layers = properties(LAYER).values()
    return Template(
        resolve(api["StageName"]),
        resolve(shared_properties["Environment"]["Variables"]),
        resolve(api["GatewayResponses"]),
        # The template writes "~1" for the slash in a media type, as JSON pointers do.
        [name.replace("~1", "/") for name in resolve(api["BinaryMediaTypes"])],
        functions,
        # In this order, a fixed segment comes before a parameter: "{" sorts after letters.
        sorted(routes),
        [folder / resolve(layer["ContentUri"]) for layer in layers],
        tables,
        firewall,
    )


def _resolve(references: Mapping[str, Any], value: Any) -> Any:
    """Replace each `Ref` in a value by what it refers to; refuse other intrinsic functions."""
    if isinstance(value, list):
        return [_resolve(references, item) for item in value]
    if not isinstance(value, dict):
        return value
    if "Ref" in value:
        return references[value["Ref"]]
    if "Fn::" in str(value.keys()):
        raise CommandError(f"the local service supports only !Ref here, not {value}")
    return {name: _resolve(references, member) for name, member in value.items()}
