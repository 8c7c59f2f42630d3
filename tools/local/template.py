"""Read what the local gateway needs from `template.yaml`: routes, functions, gateway responses, tables, the stage.

Only intrinsic functions that can be known without AWS are resolved, and only in values that are asked for: what the
local gateway does not read (policies, alarms, dashboards) may use whatever CloudFormation offers.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import yaml

REGION = "us-east-1"
ACCOUNT_ID = "123456789012"
STACK_NAME = "animal-store-local"

_NO_VALUE = object()


class TemplateError(Exception):
    """The template is missing, is not valid, or uses something that the local gateway does not know."""


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
class Match:
    """The route of a request, and its path parameters, decoded."""

    route: Route
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GatewayResponse:
    """What API Gateway answers by itself for one response type; without a status, the type's own."""

    status: int | None
    headers: Mapping[str, str]
    bodies: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Table:
    """An AWS::DynamoDB::Table: its name here, and its properties with all references resolved."""

    logical_id: str
    name: str
    properties: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Template:
    """The parts of a template that make a service run on one machine."""

    stage: str
    routes: tuple[Route, ...]
    functions: Mapping[str, Function]
    gateway_responses: Mapping[str, GatewayResponse]
    tables: Mapping[str, Table]

    @property
    def base_path(self) -> str:
        """The first path segment that all routes share, such as `/v1`; empty when there is none."""
        first = {route.resource.split("/")[1] for route in self.routes}
        return f"/{first.pop()}" if len(first) == 1 else ""

    def find(self, method: str, path: str) -> Match | None:
        """Find the route of a request (path still percent-encoded); a fixed segment goes before a parameter."""
        for route in sorted(self.routes, key=lambda route: route.resource.replace("{", "\x7f")):
            parameters = route.match(method, path)
            if parameters is not None:
                return Match(route, parameters)
        return None


def load(path: Path, parameters: Mapping[str, str]) -> Template:
    """Read a SAM template; template parameters that are not given take their defaults."""
    try:
        document = yaml.load(path.read_text("utf-8"), Loader=_Loader)  # noqa: S506 - derived from the safe loader
        return _Reader(path, document, parameters).read()
    except OSError as error:
        raise TemplateError(f"{path}: {error.strerror}") from error
    # RecursionError: a condition that refers to itself. The others: half written, while `make run RELOAD=1` watches;
    # `make check` says where the mistake is.
    except (
        yaml.YAMLError,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise TemplateError(f"{path} is not a valid SAM template: {type(error).__name__}: {error}") from error


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # in C it is ten times as fast
    """YAML with the short forms of CloudFormation's intrinsic functions."""


def _intrinsic(loader: Any, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _intrinsic)


class _Reader:
    """Read one document; knows the values that references stand for."""

    def __init__(self, path: Path, document: dict[str, Any], parameters: Mapping[str, str]) -> None:
        self._path = path
        self._resources: dict[str, dict[str, Any]] = document["Resources"]
        self._globals: dict[str, Any] = (document.get("Globals") or {}).get("Function") or {}
        self._conditions = document.get("Conditions") or {}
        self._mappings = document.get("Mappings") or {}
        self._values: dict[str, Any] = {
            "AWS::AccountId": ACCOUNT_ID,
            "AWS::NoValue": _NO_VALUE,
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::StackName": STACK_NAME,
            "AWS::URLSuffix": "amazonaws.com",
        }
        self._values |= {name: value.get("Default", "") for name, value in (document.get("Parameters") or {}).items()}
        self._values |= parameters

    def read(self) -> Template:
        functions = {name: self._function(name) for name in self._of_type("AWS::Serverless::Function")}
        apis = [self._properties(name) for name in self._of_type("AWS::Serverless::Api")]
        return Template(
            # `Prod` is the stage of the API that SAM makes by itself.
            stage=str(self._resolve(apis[0]["StageName"])) if apis else "Prod",
            routes=tuple(route for name in functions for route in self._routes(name)),
            functions=functions,
            gateway_responses={
                kind: _gateway_response(self._resolve(properties))
                for api in apis
                for kind, properties in api.get("GatewayResponses", {}).items()
            },
            tables={
                name: Table(name, self._physical_name(name), self._resolve(self._properties(name)))
                for name in self._of_type("AWS::DynamoDB::Table")
            },
        )

    def _of_type(self, kind: str) -> list[str]:
        return [
            name
            for name, resource in self._resources.items()
            if resource.get("Type") == kind and self._holds(resource.get("Condition", True))
        ]

    def _properties(self, name: str) -> dict[str, Any]:
        properties: dict[str, Any] = self._resources[name].get("Properties") or {}
        return properties

    def _function(self, name: str) -> Function:
        common, own = self._globals, self._properties(name)
        # SAM merges the environments, and joins the layers.
        variables: dict[str, Any] = {}
        for properties in (common, own):
            variables |= properties.get("Environment", {}).get("Variables", {})
        layers = [reference["Ref"] for reference in [*common.get("Layers", []), *own.get("Layers", [])]]
        settings = {"Timeout": 3, "MemorySize": 128} | common | own  # the defaults are Lambda's
        return Function(
            logical_id=name,
            code=self._folder(self._resolve(settings["CodeUri"]), name),
            handler=str(self._resolve(settings["Handler"])),
            layers=tuple(self._folder(self._resolve(self._properties(layer)["ContentUri"]), layer) for layer in layers),
            environment={key: _text(value) for key, value in self._resolve(variables).items()},
            timeout_s=float(self._resolve(settings["Timeout"])),
            memory_mb=int(self._resolve(settings["MemorySize"])),
        )

    def _folder(self, relative: Any, name: str) -> Path:
        folder = self._path.parent / str(relative)
        if not folder.is_dir():
            raise TemplateError(f"{self._path}: {name} names the folder {relative}, which does not exist")
        return folder

    def _routes(self, name: str) -> list[Route]:
        events = [event["Properties"] for event in self._properties(name)["Events"].values() if event["Type"] == "Api"]
        return [Route(str(event["Method"]).upper(), str(self._resolve(event["Path"])), name) for event in events]

    def _physical_name(self, name: str) -> str:
        """Return what `!Ref` of a resource stands for: its own name, or one like CloudFormation makes."""
        if name not in self._resources:
            raise TemplateError(f"{self._path}: there is no parameter or resource {name}")
        given = self._properties(name).get("TableName")
        return str(self._resolve(given)) if given else f"{STACK_NAME}-{name}"

    def _holds(self, condition: Any) -> bool:
        return bool(self._resolve(self._conditions[condition] if isinstance(condition, str) else condition))

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, list):
            return [item for item in map(self._resolve, value) if item is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        name = next(iter(value)) if len(value) == 1 else ""
        if name in self._intrinsic_functions:
            return self._intrinsic_functions[name](self, value[name])
        if name.startswith("Fn::"):
            raise TemplateError(f"{self._path}: the local gateway does not know {name}")
        items = {key: self._resolve(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not _NO_VALUE}

    def _ref(self, name: str) -> Any:
        return self._values[name] if name in self._values else self._physical_name(name)

    def _sub(self, argument: str | list[Any]) -> str:
        text, names = (argument, {}) if isinstance(argument, str) else argument

        def replace(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            return _text(self._resolve(names[name]) if name in names else self._attribute(name))

        return re.sub(r"\$\{([^}]*)\}", replace, text)

    def _attribute(self, name: str | list[str]) -> Any:
        resource, *attribute = name.split(".", 1) if isinstance(name, str) else name
        return ".".join([self._physical_name(resource), *attribute]) if attribute else self._ref(resource)

    def _if(self, argument: list[Any]) -> Any:
        condition, then, otherwise = argument
        return self._resolve(then if self._holds(condition) else otherwise)

    def _find_in_map(self, argument: list[Any]) -> Any:
        name, first, second = self._resolve(argument)
        return self._resolve(self._mappings[name][first][second])

    _intrinsic_functions: ClassVar[Mapping[str, Callable[["_Reader", Any], Any]]] = {
        "Ref": _ref,
        "Condition": _holds,
        "Fn::GetAtt": _attribute,
        "Fn::Sub": _sub,
        "Fn::Join": lambda self, argument: str(argument[0]).join(map(_text, self._resolve(argument[1]))),
        "Fn::FindInMap": _find_in_map,
        "Fn::If": _if,
        "Fn::Equals": lambda self, argument: len(set(map(_text, self._resolve(argument)))) == 1,
        "Fn::Not": lambda self, argument: not self._resolve(argument[0]),
        "Fn::And": lambda self, argument: all(self._resolve(argument)),
        "Fn::Or": lambda self, argument: any(self._resolve(argument)),
    }


def _text(value: Any) -> str:
    """Write a scalar as CloudFormation does."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _gateway_response(properties: Mapping[str, Any]) -> GatewayResponse:
    headers = (properties.get("ResponseParameters") or {}).get("Headers", {})
    for name, value in headers.items():
        if not re.fullmatch(r"'[^']*'", str(value)):
            raise TemplateError(f"gateway response header {name}: only a fixed value in single quotes is known here")
    return GatewayResponse(
        status=int(properties["StatusCode"]) if "StatusCode" in properties else None,
        headers={name: str(value)[1:-1] for name, value in headers.items()},
        bodies=properties.get("ResponseTemplates") or {},
    )
