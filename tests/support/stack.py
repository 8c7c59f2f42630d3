"""Read the translated template, and the parameters of its stages."""

import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

import yaml

from tools import ROOT
from tools.deployment.template import resolve

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
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    pairs = config[stage]["deploy"]["parameters"]["parameter_overrides"]
    return dict(pair.split("=", 1) for pair in pairs)


class _Names(dict[str, str]):
    """What a template refers to: parameters, and resources by their own names."""

    def __missing__(self, name: str) -> str:
        return name


def _decide(value: Any, conditions: dict[str, bool]) -> Any:
    match value:
        case {"Fn::If": [name, then, otherwise]}:
            return _decide(then if conditions[name] else otherwise, conditions)
        case {"Fn::Equals": [one, other]}:
            return str(one) == str(other)
        case {"Fn::Not": [condition]}:
            return not _decide(condition, conditions)
        case dict():
            return {key: _decide(each, conditions) for key, each in value.items()}
        case list():
            return [_decide(each, conditions) for each in value]
    return value


@cache
def decided(name: str, **given: str) -> Template:
    """Read a template with these parameters; conditions and rules are decided."""
    document = load(name)
    document["Resources"].pop("Dashboard", None)  # its text has other `${}`
    declared = document["Parameters"]
    for parameter, value in given.items():
        allowed = declared[parameter].get("AllowedValues", [value])
        assert value in map(str, allowed), parameter
    defaults = {each: value.get("Default", each) for each, value in declared.items()}
    template = resolve(document, _Names(defaults | given))
    stack: Template = _decide(template, _decide(template["Conditions"], {}))
    return stack


def production(**changed: str) -> Template:
    """Read template.yaml with production's parameters, but for some."""
    return decided("template.yaml", **parameters("production") | changed)


def properties_by_name(stack: Template, kind: str) -> dict[str, Any]:
    return {
        name: each.get("Properties", {})
        for name, each in stack["Resources"].items()
        if each["Type"] == kind
    }


def properties_of(stack: Template, kind: str) -> Any:
    (properties,) = properties_by_name(stack, kind).values()
    return properties


def role_statements(stack: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each role's name with each statement of its policies."""
    for name, role in properties_by_name(stack, "AWS::IAM::Role").items():
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield name, statement
