"""Read a template as CloudFormation does: with parameters, conditions and references resolved."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from tools import ROOT

Template = dict[str, Any]


class _Loader(yaml.CSafeLoader):
    """YAML with CloudFormation's short forms."""


def _long_form(loader: _Loader, name: str, node: yaml.Node) -> dict[str, Any]:
    value: Any = node.value
    if name == "GetAtt":
        value = value.split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    return {name if name in {"Ref", "Condition"} else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _long_form)


def load(name: str) -> Template:
    """Read a template of the root as it is written, with the long form of each function."""
    template: Template = yaml.load((ROOT / name).read_text("utf-8"), _Loader)  # noqa: S506
    return template


def parameters(stage: str) -> dict[str, str]:
    """Return what samconfig.toml says of a stage."""
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    pairs = config[stage]["deploy"]["parameters"]["parameter_overrides"]
    return dict(pair.split("=", 1) for pair in pairs)


class _Names(dict[str, Any]):
    """What a template refers to: parameters, conditions, and resources by their own names."""

    def __missing__(self, name: str) -> str:
        return name


def _substitute(text: str, names: Mapping[str, Any]) -> str:
    return re.sub(r"\$\{([\w:.]+)\}", lambda found: str(names[found[1]]), text)


_FUNCTIONS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "Ref": lambda name, names: names[name],
    "Fn::GetAtt": lambda parts, names: names[".".join(parts)],
    "Fn::Sub": _substitute,
    "Fn::If": lambda parts, names: parts[1] if names[parts[0]] else parts[2],
    "Fn::Equals": lambda pair, _: str(pair[0]) == str(pair[1]),
    "Fn::Not": lambda condition, _: not condition[0],
}


def resolve(value: Any, names: Mapping[str, Any]) -> Any:
    """Put values where a template refers to names, such as `Stage`, `HasWaf` or `Role.Arn`."""
    if isinstance(value, list):
        return [resolve(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    resolved = {key: resolve(each, names) for key, each in value.items()}
    for function in _FUNCTIONS.keys() & resolved.keys():
        return _FUNCTIONS[function](resolved[function], names)
    return resolved


@cache
def decided(file: str, **given: str) -> Template:
    """Read a template with these parameters; conditions are decided."""
    document = load(file)
    names = _Names(given)
    for parameter, declared in document["Parameters"].items():
        value = names.setdefault(parameter, declared.get("Default", parameter))
        assert str(value) in map(str, declared.get("AllowedValues", [value]))
    assert given.keys() <= document["Parameters"].keys()
    for condition, value in document["Conditions"].items():
        names[condition] = resolve(value, names)
    stack: Template = resolve(document, names)
    return stack


def staged(stage: str = "production", **changed: str) -> Template:
    """Return what a stage has of template.yaml, with its parameters but for some."""
    stack = decided("template.yaml", **parameters(stage) | changed)
    holds = {None: True, **stack["Conditions"]}
    resources = {
        name: each
        for name, each in stack["Resources"].items()
        if holds[each.get("Condition")]
    }
    return stack | {"Resources": resources}


def block_of(operation: str) -> str:
    """Return how the names of an operation's resources begin: `ListPets`."""
    return operation[0].upper() + operation[1:]


def properties_by_name(stack: Template, kind: str) -> dict[str, Any]:
    """Return the properties of each resource of a type."""
    return {
        name: each.get("Properties", {})
        for name, each in stack["Resources"].items()
        if each["Type"] == kind
    }


def properties_of(stack: Template, kind: str) -> Any:
    """Return the properties of the one resource of a type."""
    (properties,) = properties_by_name(stack, kind).values()
    return properties


def role_statements(stack: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each role's name with each statement of its policies."""
    for name, role in properties_by_name(stack, "AWS::IAM::Role").items():
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield name, statement
