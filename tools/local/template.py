"""Read what runs here of template.yaml, and refuse by its place and name what it does not know.

`without_effect.yaml` lists what a template may say that changes nothing on one machine. A value
that is used may have no intrinsic function but `Ref`. Only the firewall may have a condition.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from starlette.routing import compile_path

from tools.local import LocalError
from tools.local.firewall import Firewall, read_firewall

REGION = "us-east-1"
_WITHOUT_EFFECT = yaml.safe_load(
    Path(__file__).with_name("without_effect.yaml").read_text("utf-8")
)
FUNCTION, LAYER = "AWS::Serverless::Function", "AWS::Serverless::LayerVersion"
_API, _TABLE = "AWS::Serverless::Api", "AWS::DynamoDB::Table"
_WEB_ACL = "AWS::WAFv2::WebACL"
_GLOBALS = "Globals"
_USED = {
    _API: {"BinaryMediaTypes", "GatewayResponses", "StageName"},
    FUNCTION: {"CodeUri", "Events", "Handler", "Layers", "Runtime", "Timeout"},
    _GLOBALS: {"Environment", "Handler", "Layers", "Runtime", "Timeout"},
    "Api": {"Method", "Path", "RestApiId"},
    LAYER: {"ContentUri"},
    _TABLE: {
        "AttributeDefinitions",
        "BillingMode",
        "GlobalSecondaryIndexes",
        "KeySchema",
    },
    _WEB_ACL: {"CustomResponseBodies", "DefaultAction", "Rules"},
}
_form = lru_cache(compile_path)


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
class Table:
    """An AWS::DynamoDB::Table: the name that it has here, and the parameters of CreateTable."""

    name: str
    request: dict[str, Any]


@dataclass
class Template:
    """The parts of a template that make a service run on one machine, by their logical ids."""

    stage: str
    environment: dict[str, str]
    gateway_responses: dict[str, Any]
    binary_media_types: list[str]
    functions: dict[str, Function]
    routes: list[Route]
    layers: list[Path]
    tables: dict[str, Table]
    firewall: Firewall | None

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Find the route of a path, or raise LookupError.

        As with a REST API, path parameters stay percent-encoded, and a slash at the end of the
        path does not count:
        https://github.com/aws/aws-sam-cli/issues/771
        https://github.com/aws-powertools/powertools-lambda-python/issues/1552
        """
        path = path.removesuffix("/")
        for route in self.routes:
            match = _form(route.resource)[0].match(path)
            if match and route.method == method:
                return route, match.groupdict()
        raise LookupError(f"no function answers {method} {path}")


# The C loader is ten times as fast.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML with CloudFormation's short forms."""


def _long_form(loader: Any, name: str, node: Any) -> dict[str, Any]:
    value = node.value
    if isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    return {name if name == "Ref" else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _long_form)


def read(path: Path) -> Any:
    """Read a template as it is written, with the long form of each function."""
    return yaml.load(path.read_text("utf-8"), _Loader)  # noqa: S506 - is safe


def load(path: Path, parameters: Mapping[str, str], stack: str) -> Template:
    """Read a SAM template; template parameters that are not given take their defaults.

    The names of its tables begin with the stack's.
    """
    try:
        return _read(path.parent, read(path), parameters, stack)
    # Someone may be editing the file; a linter says where the mistake is.
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise LocalError(f"{path} cannot be used: {why}") from error


class _Reader:
    """Reads a document's resources, and refuses those that have an effect on AWS alone."""

    def __init__(
        self, document: dict[str, Any], parameters: Mapping[str, str], stack: str
    ) -> None:
        self._document = document
        declared = document["Parameters"]
        self.references: dict[str, Any] = {
            name: f"{stack}-{name}" for name in document["Resources"]
        }
        self.references |= {name: declared[name].get("Default") for name in declared}
        self.references |= {
            "AWS::Region": REGION,
            "AWS::StackName": stack,
            **parameters,
        }

    def served(self, place: str, kind: str, members: dict[str, Any]) -> dict[str, Any]:
        """Return the members that are used; LocalError if another has an effect."""
        supported = _USED.get(kind, set())
        used = {name: members[name] for name in members if name in supported}
        ignored = {*_WITHOUT_EFFECT["Resource"], *_WITHOUT_EFFECT.get(kind, [])}
        others = members.keys() - ignored - used.keys()
        if others:
            raise LocalError(f"{place}: {sorted(others)} of {kind} is not served here")
        if "Fn::" in str(used):
            raise LocalError(f"{place}: only !Ref is served here: {used}")
        return dict(_resolved(used, self.references))

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the resources of a type, by their logical ids."""
        return {
            name: self.served(name, kind, _members(resource))
            for name, resource in self._document["Resources"].items()
            if resource["Type"] == kind
        }

    def shared(self) -> dict[str, Any]:
        """Return the properties that all functions share."""
        sections = self._document["Globals"]
        others = sections.keys() - {"Function"}
        if others:
            raise LocalError(f"Globals: {sorted(others)} is not served here")
        return self.served("Globals", _GLOBALS, sections["Function"])

    def firewall(self) -> Firewall | None:
        """Return the firewall that the parameter `Waf` turns on."""
        if self.references.get("Waf") != "true":
            return None
        (web_acl,) = self.resources(_WEB_ACL).values()
        return read_firewall(web_acl)

    def refuse_others(self) -> None:
        """Refuse the types of resources that are neither served nor without effect."""
        for name, resource in self._document["Resources"].items():
            kind = resource["Type"]
            is_without_effect = kind.startswith(tuple(_WITHOUT_EFFECT["Type"]))
            if kind not in _USED and not is_without_effect:
                raise LocalError(f"{name}: {kind} is not served here")


def _members(resource: dict[str, Any]) -> dict[str, Any]:
    """Return properties and attributes: one such as Condition has an effect too."""
    members: dict[str, Any] = resource | resource.get("Properties", {})
    if "Events" in members:
        members["Events"] = {
            name: event
            for name, event in members["Events"].items()
            if event["Type"] not in _WITHOUT_EFFECT["Event"]
        }
    return members


def _read(
    folder: Path, document: dict[str, Any], parameters: Mapping[str, str], stack: str
) -> Template:
    reader = _Reader(document, parameters, stack)
    reader.refuse_others()
    shared = reader.shared()
    (api,) = reader.resources(_API).values()
    functions: dict[str, Function] = {}
    routes: list[Route] = []
    for name, properties in reader.resources(FUNCTION).items():
        function = shared | properties
        functions[name] = Function(
            folder / function["CodeUri"],
            function["Handler"],
            float(function["Timeout"]),
        )
        for event in function["Events"].values():
            route = reader.served(name, event["Type"], event["Properties"])
            routes.append(Route(route["Path"], route["Method"].upper(), name))
    tables = {}
    for name, properties in reader.resources(_TABLE).items():
        table_name = reader.references[name]
        tables[name] = Table(table_name, {"TableName": table_name} | properties)
    return Template(
        api["StageName"],
        shared["Environment"]["Variables"],
        api["GatewayResponses"],
        # In an OpenAPI document, "~1" stands for a slash.
        [name.replace("~1", "/") for name in api.get("BinaryMediaTypes", [])],
        functions,
        sorted(routes),  # fixed segments go first: "{" comes after every letter
        [folder / layer["ContentUri"] for layer in reader.resources(LAYER).values()],
        tables,
        reader.firewall(),
    )


def _resolved(value: Any, references: Mapping[str, Any]) -> Any:
    """Replace each `Ref` by what it stands for."""
    match value:
        case {"Ref": name}:
            return references[name]
        case dict():
            return {name: _resolved(value[name], references) for name in value}
        case list():
            return [_resolved(item, references) for item in value]
    return value
