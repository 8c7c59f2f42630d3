"""What the local gateway needs of `template.yaml`: routes, functions, gateway responses, tables, the stage's name.

Only intrinsic functions that can be known without AWS are resolved, and only where a value is asked for: what the
local gateway does not read (policies, alarms, dashboards) may use whatever CloudFormation offers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

REGION = "us-east-1"
ACCOUNT_ID = "123456789012"
API_ID = "local"
STACK_NAME = "animal-store-local"

# What a function gets when the template is silent: https://docs.aws.amazon.com/lambda/latest/api/API_CreateFunction.html
_DEFAULT_TIMEOUT_S = 3
_DEFAULT_MEMORY_MB = 128

_NO_VALUE = object()


class TemplateError(Exception):
    """`template.yaml` is missing, is no YAML, or asks for something that the local gateway does not know."""


@dataclass(frozen=True, slots=True)
class Function:
    """An AWS::Serverless::Function.

    Args:
        logical_id: Its name in the template.
        code: The folder of its code.
        handler: `module.name`, as on Lambda.
        layers: The folders of its layers, in the template's order.
        environment: Its environment variables, all references resolved.
        timeout_s: After how many seconds Lambda ends it.
        memory_mb: Its memory, in MiB.
    """

    logical_id: str
    code: Path
    handler: str
    layers: tuple[Path, ...]
    environment: Mapping[str, str]
    timeout_s: float
    memory_mb: int


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a resource.

    Args:
        method: In capitals; ANY matches each.
        resource: As in the template, for instance `/v1/pets/{petId}`.
        function: Logical id of the function behind it.
    """

    method: str
    resource: str
    function: str

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """Compare with a request.

        Segments are compared after percent-decoding, and parameters are decoded once, so that an encoded slash stays
        inside its segment.

        Args:
            method: As in the request line.
            path: As in the request target, still percent-encoded, without the query.

        Returns:
            The path parameters, or None when the route is another.
        """
        if self.method not in {method, "ANY"}:
            return None
        parameters: dict[str, str] = {}
        wanted, given = self.resource.split("/"), path.split("/")
        if wanted[-1].endswith("+}"):
            given[len(wanted) - 1 :] = ["/".join(given[len(wanted) - 1 :])]
        if len(wanted) != len(given):
            return None
        for name, segment in zip(wanted, given, strict=True):
            value = unquote(segment)
            if name.startswith("{") and value:
                parameters[name.strip("{+}")] = value
            elif name != value:
                return None
        return parameters


@dataclass(frozen=True, slots=True)
class Match:
    """The route of a request, and its path parameters, decoded."""

    route: Route
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GatewayResponse:
    """What API Gateway answers by itself for one response type; `status` None keeps the type's own status."""

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
        """The first path segment that all routes share, for instance `/v1`; empty when there is none."""
        first = {route.resource.split("/")[1] for route in self.routes}
        return f"/{first.pop()}" if len(first) == 1 else ""

    def find(self, method: str, path: str) -> Match | None:
        """Find the route of a request; a fixed segment goes before a parameter, as in API Gateway."""
        for route in sorted(self.routes, key=lambda route: route.resource.replace("{", "\x7f")):
            parameters = route.match(method, path)
            if parameters is not None:
                return Match(route, parameters)
        return None


def load(path: Path, parameters: Mapping[str, str]) -> Template:
    """Read a SAM template.

    Args:
        path: Of `template.yaml`.
        parameters: Values of template parameters; the others take their defaults.

    Raises:
        TemplateError: See there; the message says what and where.
    """
    try:
        document = yaml.load(path.read_text("utf-8"), Loader=_Loader)  # noqa: S506 - derived from the safe loader
    except OSError as error:
        raise TemplateError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no UTF-8, or a date that does not exist
        raise TemplateError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
        raise TemplateError(f"{path} has no Resources")
    try:
        return _Reader(path, document, parameters).read()
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # Half written, for instance, while `make run RELOAD=1` looks on; `make check` says where the mistake is.
        raise TemplateError(f"{path} is no SAM template: {type(error).__name__}: {error}") from error


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # in C it is ten times as fast
    """YAML with the short forms of CloudFormation's intrinsic functions."""


def _intrinsic(loader: Any, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _intrinsic)


class _Reader:
    """Reads one document; knows the values that references stand for."""

    def __init__(self, path: Path, document: dict[str, Any], parameters: Mapping[str, str]) -> None:
        self._path = path
        self._resources: dict[str, dict[str, Any]] = document["Resources"]
        self._globals = document.get("Globals") or {}
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
        return Template(
            stage=self._stage(),
            routes=tuple(route for name in functions for route in self._routes(name)),
            functions=functions,
            gateway_responses=self._gateway_responses(),
            tables={name: self._table(name) for name in self._of_type("AWS::DynamoDB::Table")},
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

    def _stage(self) -> str:
        for name in self._of_type("AWS::Serverless::Api"):
            return str(self._resolve(self._properties(name)["StageName"]))
        return "Prod"  # the name of SAM's implicit API's stage

    def _function(self, name: str) -> Function:
        common, own = self._globals.get("Function", {}), self._properties(name)

        def setting(key: str, default: Any) -> Any:
            return self._resolve(own.get(key, common.get(key, default)))

        variables = {
            **common.get("Environment", {}).get("Variables", {}),
            **own.get("Environment", {}).get("Variables", {}),
        }
        # SAM joins the layers of Globals and of the function.
        layers = [reference["Ref"] for reference in [*common.get("Layers", []), *own.get("Layers", [])]]
        return Function(
            logical_id=name,
            code=self._folder(setting("CodeUri", None), name),
            handler=str(setting("Handler", "")),
            layers=tuple(self._folder(self._resolve(self._properties(layer)["ContentUri"]), layer) for layer in layers),
            environment={key: _text(value) for key, value in self._resolve(variables).items()},
            timeout_s=float(setting("Timeout", _DEFAULT_TIMEOUT_S)),
            memory_mb=int(setting("MemorySize", _DEFAULT_MEMORY_MB)),
        )

    def _folder(self, relative: Any, name: str) -> Path:
        folder = self._path.parent / str(relative)
        if not folder.is_dir():
            raise TemplateError(f"{self._path}: {name} names the folder {relative}, which does not exist")
        return folder

    def _routes(self, name: str) -> list[Route]:
        events = [event for event in self._properties(name).get("Events", {}).values() if event["Type"] == "Api"]
        return [
            Route(str(event["Properties"]["Method"]).upper(), str(self._resolve(event["Properties"]["Path"])), name)
            for event in events
        ]

    def _gateway_responses(self) -> dict[str, GatewayResponse]:
        found: dict[str, GatewayResponse] = {}
        for name in self._of_type("AWS::Serverless::Api"):
            for kind, properties in self._properties(name).get("GatewayResponses", {}).items():
                resolved = self._resolve(properties)
                found[kind] = _gateway_response(resolved, (resolved.get("ResponseParameters") or {}).get("Headers", {}))
        for name in self._of_type("AWS::ApiGateway::GatewayResponse"):
            resolved = self._resolve(self._properties(name) | {"RestApiId": None})
            headers = {
                key.removeprefix("gatewayresponse.header."): value
                for key, value in (resolved.get("ResponseParameters") or {}).items()
            }
            found[resolved["ResponseType"]] = _gateway_response(resolved, headers)
        return found

    def _table(self, name: str) -> Table:
        return Table(name, self._physical_name(name), self._resolve(self._properties(name)))

    def _physical_name(self, name: str) -> str:
        """What `!Ref` of a resource stands for: its own name, or one like CloudFormation makes."""
        given = self._properties(name).get("TableName")
        return str(self._resolve(given)) if given else f"{STACK_NAME}-{name}"

    def _holds(self, condition: Any) -> bool:
        if isinstance(condition, str):
            condition = self._conditions[condition]
        return bool(self._resolve(condition))

    def _reference(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        if name in self._resources:
            return self._physical_name(name)
        raise TemplateError(f"{self._path}: there is no parameter or resource {name}")

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, list):
            return [item for item in map(self._resolve, value) if item is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name in {"Ref", "Condition"} or name.startswith("Fn::"):
                return self._call(name, argument)
        items = {key: self._resolve(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not _NO_VALUE}

    def _call(self, name: str, argument: Any) -> Any:
        method = getattr(self, "_fn_" + name.removeprefix("Fn::").lower(), None)
        if method is None:
            raise TemplateError(f"{self._path}: the local gateway does not know {name}")
        return method(argument)

    def _fn_ref(self, name: str) -> Any:
        return self._reference(name)

    def _fn_condition(self, name: str) -> bool:
        return self._holds(name)

    def _fn_getatt(self, argument: list[str]) -> str:
        return ".".join([self._physical_name(argument[0]), *argument[1:]])

    def _fn_sub(self, argument: str | list[Any]) -> str:
        text, names = (argument, {}) if isinstance(argument, str) else argument

        def replace(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            if name in names:
                return _text(self._resolve(names[name]))
            return _text(self._fn_getatt(name.split(".", 1)) if "." in name else self._reference(name))

        return re.sub(r"\$\{([^}]*)\}", replace, text)

    def _fn_join(self, argument: list[Any]) -> str:
        return str(argument[0]).join(_text(item) for item in self._resolve(argument[1]))

    def _fn_findinmap(self, argument: list[Any]) -> Any:
        name, first, second = self._resolve(argument[:3])
        try:
            return self._resolve(self._mappings[name][first][second])
        except KeyError as error:
            raise TemplateError(f"{self._path}: mapping {name} has no {first}, {second}") from error

    def _fn_if(self, argument: list[Any]) -> Any:
        condition, then, otherwise = argument
        return self._resolve(then if self._holds(condition) else otherwise)

    def _fn_equals(self, argument: list[Any]) -> bool:
        first, second = self._resolve(argument)
        return _text(first) == _text(second)

    def _fn_not(self, argument: list[Any]) -> bool:
        return not self._resolve(argument[0])

    def _fn_and(self, argument: list[Any]) -> bool:
        return all(self._resolve(argument))

    def _fn_or(self, argument: list[Any]) -> bool:
        return any(self._resolve(argument))


def _text(value: Any) -> str:
    """Write a scalar as CloudFormation does."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _gateway_response(properties: Mapping[str, Any], headers: Mapping[str, Any]) -> GatewayResponse:
    for name, value in headers.items():
        if not re.fullmatch(r"'[^']*'", str(value)):
            raise TemplateError(f"gateway response header {name}: only a fixed value in single quotes is known here")
    status = properties.get("StatusCode")
    return GatewayResponse(
        status=None if status is None else int(status),
        headers={name: str(value)[1:-1] for name, value in headers.items()},
        bodies=properties.get("ResponseTemplates") or {},
    )
