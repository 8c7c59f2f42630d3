"""Read the parts of template.yaml that run on one machine, and ignore the rest.

The values that are read may use only the intrinsic function `Ref`; any other raises LocalError.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from starlette.routing import compile_path

from tools.local import LocalError
from tools.local.firewall import Firewall

REGION = "us-east-1"
_STACK = "animal-store-local"
_compiled = lru_cache(compile_path)
FUNCTION, LAYER = "AWS::Serverless::Function", "AWS::Serverless::LayerVersion"
_CREATE_TABLE = (
    "AttributeDefinitions",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "KeySchema",
)


class Route(NamedTuple):
    """A resource, such as `/v1/pets/{petId}`, a method of it, and its function's logical id."""

    resource: str
    method: str
    function: str


@dataclass
class Function:
    """An AWS::Serverless::Function: where its handler is, and how long it may run."""

    code: Path
    handler: str
    timeout_s: float


@dataclass
class Template:
    """The parts of a template that make a service run on one machine, by their logical ids.

    A table is the parameters of CreateTable.
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
        """Find the route of a path; LocalError if there is none.

        As with a REST API, path parameters stay percent-encoded, and a slash at the end of the
        path does not count:
        https://github.com/aws/aws-sam-cli/issues/771
        https://github.com/aws-powertools/powertools-lambda-python/issues/1552
        """
        path = path.removesuffix("/")
        for route in self.routes:
            match = _compiled(route.resource)[0].match(path)
            if match and route.method == method:
                return route, match.groupdict()
        raise LocalError(f"no function answers {method} {path}")


# The C loader is ten times as fast.
class _Loader(yaml.CSafeLoader):
    """YAML with CloudFormation's short forms."""


def _long_form(loader: Any, name: str, node: Any) -> dict[str, Any]:
    value = node.value
    if isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    return {name if name == "Ref" else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _long_form)


def read(path: Path) -> Any:
    """Read a template as it is written, with the long form of each function."""
    with path.open("rb") as file:
        return yaml.load(file, _Loader)  # noqa: S506 - is safe


def load(path: Path, parameters: Mapping[str, str]) -> Template:
    """Read a SAM template; template parameters that are not given take their defaults."""
    folder, document = path.parent, read(path)
    declared = document["Parameters"]
    references = {name: declared[name].get("Default") for name in declared}
    references |= {name: f"{_STACK}-{name}" for name in document["Resources"]}
    references |= {"AWS::Region": REGION, "AWS::StackName": _STACK, **parameters}
    resolve = partial(_resolve, references)

    def properties(kind: str) -> dict[str, dict[str, Any]]:
        """Return the properties of each resource of a type, by its logical id."""
        return {
            name: resource["Properties"]
            for name, resource in document["Resources"].items()
            if resource["Type"] == kind
        }

    shared = document["Globals"]["Function"]
    (api,) = properties("AWS::Serverless::Api").values()
    functions: dict[str, Function] = {}
    routes: list[Route] = []
    for name, own in properties(FUNCTION).items():
        function = shared | own
        functions[name] = Function(
            folder / resolve(function["CodeUri"]),
            resolve(function["Handler"]),
            float(resolve(function["Timeout"])),
        )
        for event in function["Events"].values():
            if event["Type"] == "Api":
                route = resolve(event["Properties"])
                routes.append(Route(route["Path"], route["Method"].upper(), name))
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
        resolve(shared["Environment"]["Variables"]),
        resolve(api["GatewayResponses"]),
        # In an OpenAPI document, "~1" stands for a slash.
        [name.replace("~1", "/") for name in resolve(api["BinaryMediaTypes"])],
        functions,
        sorted(routes),  # fixed segments go first: "{" comes after every letter
        [folder / resolve(layer["ContentUri"]) for layer in layers],
        tables,
        firewall,
    )


def _resolve(references: Mapping[str, Any], value: Any) -> Any:
    """Replace each `Ref` by what it stands for; other intrinsic functions are refused."""
    if isinstance(value, list):
        return [_resolve(references, each) for each in value]
    if not isinstance(value, dict):
        return value
    if "Ref" in value:
        return references[value["Ref"]]
    if "Fn::" in str(value.keys()):
        raise LocalError(f"only !Ref is served here, not {value}")
    return {name: _resolve(references, each) for name, each in value.items()}
