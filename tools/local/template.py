"""Read what the local gateway needs from `template.yaml`: routes, functions, gateway responses, tables, the stage.

Intrinsic functions are resolved only in values that are asked for, and only the few that those use: what the local
gateway does not read (policies, alarms, dashboards) may use whatever CloudFormation offers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

from tools.local import LocalError

REGION = "us-east-1"
ACCOUNT_ID = "123456789012"
STACK_NAME = "animal-store-local"

_PSEUDO_PARAMETERS = {
    "AWS::AccountId": ACCOUNT_ID,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": STACK_NAME,
}


@dataclass(frozen=True, slots=True)
class Function:
    """An AWS::Serverless::Function; `code` and `layers` are folders."""

    logical_id: str
    code: Path
    handler: str
    layers: tuple[Path, ...]
    environment: Mapping[str, str]
    timeout_s: float
    memory_mb: int


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a resource, such as `/v1/pets/{petId}`, and the logical id of the function behind it."""

    method: str
    resource: str
    function: str

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """Return the path parameters of a request for this route, None for any other request.

        Segments are decoded once, after they have been split: an encoded slash stays inside its segment.
        """
        wanted, given = self.resource.split("/"), path.split("/")
        if wanted[-1].endswith("+}"):
            given[len(wanted) - 1 :] = ["/".join(given[len(wanted) - 1 :])]
        if self.method not in {method, "ANY"} or len(wanted) != len(given):
            return None
        parameters: dict[str, str] = {}
        for name, segment in zip(wanted, map(unquote, given), strict=True):
            if name.startswith("{") and segment:
                parameters[name.strip("{+}")] = segment
            elif name != segment:
                return None
        return parameters


@dataclass(frozen=True, slots=True)
class Table:
    """An AWS::DynamoDB::Table: its name here, and its properties with all references resolved."""

    name: str
    properties: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Template:
    """The parts of a template that make a service run on one machine; all but the routes by their names in it."""

    stage: str
    routes: tuple[Route, ...]
    functions: Mapping[str, Function]
    gateway_responses: Mapping[str, Mapping[str, Any]]
    tables: Mapping[str, Table]

    @property
    def base_path(self) -> str:
        """The first path segment of the routes, such as `/v1`."""
        return "/" + self.routes[0].resource.split("/")[1]

    def find(self, method: str, path: str) -> tuple[Route | None, dict[str, str]]:
        """Find the route of a request (path still percent-encoded) and its parameters; a fixed segment goes first."""
        for route in sorted(self.routes, key=lambda route: route.resource.replace("{", "\x7f")):
            parameters = route.match(method, path)
            if parameters is not None:
                return route, parameters
        return None, {}


def load(path: Path, parameters: Mapping[str, str]) -> Template:
    """Read a SAM template; template parameters that are not given take their defaults."""
    try:
        document = yaml.load(path.read_text("utf-8"), Loader=_Loader)  # noqa: S506 - derived from the safe loader
        return _Reader(path, document, parameters).read()
    except OSError as error:
        raise LocalError(f"{path}: {error.strerror}") from error
    # Half written, while `make run RELOAD=1` watches, for instance; `make check` says where the mistake is.
    except (yaml.YAMLError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise LocalError(f"{path} is not a valid SAM template: {type(error).__name__}: {error}") from error


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # in C it is ten times as fast
    """YAML with the short forms of CloudFormation's intrinsic functions."""


def _intrinsic(loader: Any, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    else:
        construct = loader.construct_sequence if isinstance(node, yaml.SequenceNode) else loader.construct_mapping
        value = construct(node, deep=True)
    return {"Ref" if suffix == "Ref" else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _intrinsic)


class _Reader:
    """Read one document."""

    def __init__(self, path: Path, document: dict[str, Any], parameters: Mapping[str, str]) -> None:
        self._path = path
        self._resources: dict[str, dict[str, Any]] = document["Resources"]
        self._globals = (document.get("Globals") or {}).get("Function") or {}
        defaults = {name: value.get("Default", "") for name, value in (document.get("Parameters") or {}).items()}
        self._values = {**_PSEUDO_PARAMETERS, **defaults, **parameters}

    def read(self) -> Template:
        (api,) = self._of_type("AWS::Serverless::Api").values()
        functions = self._of_type("AWS::Serverless::Function")
        return Template(
            stage=str(self._resolve(api["StageName"])),
            routes=tuple(route for name, function in functions.items() for route in self._routes(name, function)),
            functions={name: self._function(name, function) for name, function in functions.items()},
            gateway_responses=self._resolve(api.get("GatewayResponses", {})),
            tables={
                name: Table(self._reference(name), self._resolve(properties))
                for name, properties in self._of_type("AWS::DynamoDB::Table").items()
            },
        )

    def _of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        found = {name: resource for name, resource in self._resources.items() if resource["Type"] == kind}
        for name, resource in found.items():
            if "Condition" in resource:
                raise LocalError(f"{self._path}: {name} has a condition, which the local gateway does not know")
        return {name: resource["Properties"] for name, resource in found.items()}

    def _function(self, name: str, own: dict[str, Any]) -> Function:
        # SAM merges the environments, and joins the layers; the defaults are Lambda's.
        settings = {"Timeout": 3, "MemorySize": 128} | self._globals | own
        both = (self._globals, own)
        variables = [self._resolve(properties.get("Environment", {}).get("Variables", {})) for properties in both]
        layers = [self._resources[layer["Ref"]]["Properties"] for each in both for layer in each.get("Layers", [])]
        return Function(
            logical_id=name,
            code=self._folder(settings["CodeUri"]),
            handler=str(self._resolve(settings["Handler"])),
            layers=tuple(self._folder(layer["ContentUri"]) for layer in layers),
            environment={key: _text(value) for each in variables for key, value in each.items()},
            timeout_s=float(self._resolve(settings["Timeout"])),
            memory_mb=int(self._resolve(settings["MemorySize"])),
        )

    def _folder(self, relative: Any) -> Path:
        folder = self._path.parent / str(self._resolve(relative))
        if not folder.is_dir():
            raise LocalError(f"{self._path}: the folder {relative} does not exist")
        return folder

    def _routes(self, name: str, function: dict[str, Any]) -> list[Route]:
        events = [event["Properties"] for event in function["Events"].values() if event["Type"] == "Api"]
        return [Route(str(event["Method"]).upper(), str(self._resolve(event["Path"])), name) for event in events]

    def _reference(self, name: str) -> str:
        """Return what `!Ref` stands for: a parameter's value, or a resource's name like CloudFormation makes."""
        if name in self._resources:
            return f"{STACK_NAME}-{name}"
        if name not in self._values:
            raise LocalError(f"{self._path}: there is no parameter or resource {name}")
        return _text(self._values[name])

    def _resolve(self, value: Any) -> Any:
        match value:
            case list():
                return [self._resolve(item) for item in value]
            case {"Ref": name}:
                return self._reference(name)
            case {"Fn::Sub": str(text)}:
                return re.sub(r"\$\{([^}]*)\}", lambda found: self._reference(found[1]), text)
            case dict() if any(name.startswith("Fn::") for name in value):
                raise LocalError(f"{self._path}: the local gateway does not know {', '.join(value)}")
            case dict():
                return {key: self._resolve(item) for key, item in value.items()}
        return value


def _text(value: Any) -> str:
    """Write a scalar as CloudFormation does."""
    return str(value).lower() if isinstance(value, bool) else str(value)
