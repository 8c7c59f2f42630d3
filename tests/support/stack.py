"""Reads templates as CloudFormation does: it resolves parameters, conditions and references."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from tools import ROOT
from tools.local.template import read

Template = dict[str, Any]


def parameters(stage: str) -> dict[str, str]:
    """Return the parameters of a stage in samconfig.toml."""
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    pairs = config[stage]["deploy"]["parameters"]["parameter_overrides"]
    return dict(pair.split("=", 1) for pair in pairs)


def resolve(value: Any, names: Mapping[str, Any]) -> Any:
    """Replace each intrinsic function by its value.

    Args:
        value: A part of a template.
        names: The values of parameters, conditions and resources. A reference to another name,
            such as `Role.Arn`, becomes that name.
    """
    if isinstance(value, list):
        return [resolve(element, names) for element in value]
    if not isinstance(value, dict):
        return value
    result: Any = {key: resolve(member, names) for key, member in value.items()}
    match result:
        case {"Ref": name} | {"Fn::GetAtt": name}:
            result = names.get(name, name)
        case {"Fn::Sub": text}:
            result = re.sub(
                r"\$\{([\w:.]+)\}",
                lambda match: str(names.get(match[1], match[1])),
                text,
            )
        case {"Fn::If": [condition, if_true, if_false]}:
            result = if_true if names[condition] else if_false
        case {"Fn::Equals": [left, right]}:
            result = str(left) == right
        case {"Fn::Not": [condition]}:
            result = not condition
    return result


@cache
def read_stack(file: str, **values: str) -> Template:
    """Return the template of a stack that has these values of parameters."""
    template = read(ROOT / file)
    names: dict[str, Any] = {}
    for name, parameter in template["Parameters"].items():
        names[name] = parameter.get("Default", name)
    names |= values
    names |= resolve(template["Conditions"], names)
    stack: Template = resolve(template, names)
    for name, resource in template["Resources"].items():
        if not names.get(resource.get("Condition"), True):
            del stack["Resources"][name]
    return stack


def read_stage(stage: str = "production", **values: str) -> Template:
    """Return the template of a stage; the values override parameters in samconfig.toml."""
    return read_stack("template.yaml", **parameters(stage) | values)


def properties_by_name(stack: Template, resource_type: str) -> dict[str, Any]:
    """Return the properties of each resource of a type."""
    return {
        name: resource.get("Properties", {})
        for name, resource in stack["Resources"].items()
        if resource["Type"] == resource_type
    }
