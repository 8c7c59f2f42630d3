"""Read what the gateway needs from a SAM template.

Routes, functions, gateway responses, tables and the stage may use no intrinsic function but
`Ref`; any other is refused where it is read. The rest may use whatever CloudFormation offers.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import yaml
from pydantic import AliasPath, BaseModel, Field

from lambda_local import LocalError

_CREATED_WITH = {"AttributeDefinitions", "KeySchema", "BillingMode", "GlobalSecondaryIndexes"}


class Function(BaseModel):
    """An AWS::Serverless::Function; its code is a folder."""

    logical_id: str
    code: Path = Field(validation_alias="CodeUri")
    handler: str = Field(validation_alias="Handler")
    environment: dict[str, str] = Field({}, validation_alias=AliasPath("Environment", "Variables"))
    timeout_s: float = Field(3, validation_alias="Timeout")
    memory_mb: int = Field(128, validation_alias="MemorySize")


class Route(NamedTuple):
    """A resource, such as `/notes/{id}`, a method of it, and its function's logical id."""

    resource: str
    method: str
    function: str


class Table(NamedTuple):
    """An AWS::DynamoDB::Table: its name here, and its properties."""

    name: str
    properties: dict[str, Any]

    @property
    def request(self) -> dict[str, Any]:
        """The parameters of CreateTable; a table's other properties protect data on AWS."""
        created_with = {name: v for name, v in self.properties.items() if name in _CREATED_WITH}
        return {"TableName": self.name, **created_with}


class Template(NamedTuple):
    """The parts of a template that make a service run on one machine."""

    stage: str
    routes: list[Route]
    functions: dict[str, Function]
    layers: list[Path]
    gateway_responses: dict[str, dict[str, Any]]
    tables: dict[str, Table]

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Find the route and path parameters of a percent-encoded path, or raise LookupError."""
        for route in self.routes:
            form = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", route.resource)
            found = re.fullmatch(form, path)
            if found and route.method == method:
                return route, {name: unquote(value) for name, value in found.groupdict().items()}
        raise LookupError(f"no function answers {method} {path}")

    def function_of(self, event: Mapping[str, Any]) -> Function:
        """Find the function to which API Gateway would send an event, or raise LookupError."""
        return self.functions[self.find(event["httpMethod"], event["path"])[0].function]


# The C loader is ten times as fast.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML with CloudFormation's short forms; of all but `!Ref` only the name is kept."""


_Loader.add_multi_constructor(
    "!", lambda _, name, node: {"Ref": node.value} if name == "Ref" else {f"Fn::{name}": ""}
)


def load(path: Path, parameters: Mapping[str, str], stack: str = "local") -> Template:
    """Read a SAM template; template parameters that are not given take their defaults.

    The names of its tables begin with the stack's name.
    """
    try:
        document = yaml.load(path.read_text("utf-8"), Loader=_Loader)  # noqa: S506 - is safe
        declared = document.get("Parameters", {})
        values = {name: parameter.get("Default") for name, parameter in declared.items()}
        # Resources have names like those that CloudFormation makes.
        names = {name: f"{stack}-{name}" for name in document["Resources"]}
        resolved = _resolved(document, {**values, **parameters, **names})
        return _read(path.parent, resolved, names)
    # Someone may be editing the file; a linter says where the mistake is.
    except (OSError, yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise LocalError(f"{path} cannot be used: {type(error).__name__}: {error}") from error


def _read(folder: Path, document: dict[str, Any], names: Mapping[str, str]) -> Template:
    def of_type(kind: str) -> dict[str, Any]:
        found = {
            name: resource
            for name, resource in document["Resources"].items()
            if resource["Type"] == kind
        }
        for name, resource in found.items():
            # All functions share a process, and so its variables and layers.
            own = {*resource, *resource.get("Properties", {})}
            if not own.isdisjoint({"Condition", "Environment", "Layers"}):
                raise LocalError(
                    f"{name} has a condition, variables or layers of its own, which cannot be local"
                )
        return {name: resource.get("Properties", {}) for name, resource in found.items()}

    apis = [*of_type("AWS::Serverless::Api").values()]
    if len(apis) > 1:
        raise LocalError(f"{len(apis)} APIs cannot be served at one address")
    # Without any, SAM makes this one.
    api: dict[str, Any] = apis[0] if apis else {"StageName": "Prod"}
    functions = of_type("AWS::Serverless::Function")
    routes = [
        _route(name, event)
        for name, own in functions.items()
        for event in own.get("Events", {}).values()
    ]
    shared = document.get("Globals", {}).get("Function", {})
    return Template(
        stage=api["StageName"],
        routes=sorted(routes),  # fixed segments go first: "{" comes after every letter
        functions={
            name: Function.model_validate(
                shared | own | {"logical_id": name, "CodeUri": folder / own["CodeUri"]}
            )
            for name, own in functions.items()
        },
        layers=[
            folder / layer["ContentUri"]
            for layer in of_type("AWS::Serverless::LayerVersion").values()
        ],
        gateway_responses=api.get("GatewayResponses", {}),
        tables={
            name: Table(names[name], each) for name, each in of_type("AWS::DynamoDB::Table").items()
        },
    )


def _route(function: str, event: dict[str, Any]) -> Route:
    if event["Type"] != "Api":
        raise LocalError(f"{function} has an event of type {event['Type']}, which cannot be local")
    resource, method = event["Properties"]["Path"], event["Properties"]["Method"].upper()
    if method == "ANY" or "+}" in resource:
        raise LocalError(f"{function}: {method} {resource} is not known here, only single routes")
    return Route(resource, method, function)


def _resolved(value: Any, references: Mapping[str, Any]) -> Any:
    """Replace each `Ref` by what it stands for; an unknown one stays, and is refused where used."""
    match value:
        case {"Ref": name}:
            return references.get(name, value)
        case dict():
            return {key: _resolved(item, references) for key, item in value.items()}
        case list():
            return [_resolved(item, references) for item in value]
    return value
