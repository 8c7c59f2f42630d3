"""Read what runs here of template.yaml, and refuse by its place and name what it does not know.

`without_effect.yaml` lists what a template may say that changes nothing on one machine. A value
that is used may have no intrinsic function but `Ref`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from starlette.routing import compile_path

from tools.local import LocalError

REGION = "us-east-1"
_WITHOUT_EFFECT = yaml.safe_load(
    Path(__file__).with_name("without_effect.yaml").read_text("utf-8")
)
_API, _FUNCTION = "AWS::Serverless::Api", "AWS::Serverless::Function"
_LAYER, _TABLE = "AWS::Serverless::LayerVersion", "AWS::DynamoDB::Table"
_GLOBALS = "Globals"
_USED = {
    _API: "StageName GatewayResponses",
    _FUNCTION: "CodeUri Events Handler Layers Runtime Timeout",
    _GLOBALS: "Environment Handler Layers Runtime Timeout",
    "Api": "Path Method RestApiId",
    _LAYER: "ContentUri",
    _TABLE: "AttributeDefinitions BillingMode GlobalSecondaryIndexes KeySchema",
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
    functions: dict[str, Function]
    routes: list[Route]
    layers: list[Path]
    tables: dict[str, Table]

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Find the route of a path, or raise LookupError; path parameters stay percent-encoded."""
        for route in self.routes:
            found = _form(route.resource)[0].match(path)
            if found and route.method == method:
                return route, found.groupdict()
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


def _read(
    folder: Path, document: dict[str, Any], parameters: Mapping[str, str], stack: str
) -> Template:
    resources, declared = document["Resources"], document["Parameters"]
    references: dict[str, Any] = {name: f"{stack}-{name}" for name in resources}
    references |= {name: declared[name].get("Default") for name in declared}
    references |= {"AWS::Region": REGION, "AWS::StackName": stack, **parameters}

    def served(place: str, kind: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return what is used of a resource; LocalError if more of it has an effect."""
        used = {
            name: given[name] for name in _USED.get(kind, "").split() if name in given
        }
        ignored = {*_WITHOUT_EFFECT["Resource"], *_WITHOUT_EFFECT.get(kind, [])}
        if others := given.keys() - ignored - used.keys():
            raise LocalError(f"{place}: {sorted(others)} of {kind} is not served here")
        if "Fn::" in str(used):
            raise LocalError(f"{place}: only !Ref is served here: {used}")
        return dict(_resolved(used, references))

    shared = served("Globals", _GLOBALS, document["Globals"].pop("Function"))
    served("Globals", "", document["Globals"])
    found: dict[str, dict[str, Any]] = {kind: {} for kind in _USED}
    for name, resource in resources.items():
        kind = resource["Type"]
        if not kind.startswith(tuple(_WITHOUT_EFFECT["Type"])):
            # An attribute, such as Condition, is refused as a property would be.
            given = resource | resource.get("Properties", {})
            found[kind][name] = served(name, kind, given)
    (api,) = found[_API].values()
    functions: dict[str, Function] = {}
    routes: list[Route] = []
    for name, own in found[_FUNCTION].items():
        given = shared | own
        functions[name] = Function(
            folder / given["CodeUri"], given["Handler"], float(given["Timeout"])
        )
        for event in given["Events"].values():
            asked = served(name, event["Type"], event["Properties"])
            routes.append(Route(asked["Path"], asked["Method"].upper(), name))
    return Template(
        api["StageName"],
        shared["Environment"]["Variables"],
        api["GatewayResponses"],
        functions,
        sorted(routes),  # fixed segments go first: "{" comes after every letter
        [folder / layer["ContentUri"] for layer in found[_LAYER].values()],
        {
            name: Table(references[name], {"TableName": references[name]} | given)
            for name, given in found[_TABLE].items()
        },
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
