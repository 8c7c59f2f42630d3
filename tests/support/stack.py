"""Read a template as CloudFormation does: with parameters, conditions and references resolved."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from tools import ROOT
from tools.local.template import read

Template = dict[str, Any]


def parameters(stage: str) -> dict[str, str]:
    """Return what samconfig.toml says of a stage."""
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    pairs = config[stage]["deploy"]["parameters"]["parameter_overrides"]
    return dict(pair.split("=", 1) for pair in pairs)


def resolve(value: Any, names: Mapping[str, Any]) -> Any:
    """Put values where a template refers to names; others, such as `Role.Arn`, stay names."""
    if isinstance(value, list):
        return [resolve(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    result: Any = {key: resolve(each, names) for key, each in value.items()}
    match result:
        case {"Ref": name} | {"Fn::GetAtt": name}:
            result = names.get(name, name)
        case {"Fn::Sub": text}:
            result = re.sub(
                r"\$\{([\w:.]+)\}", lambda it: str(names.get(it[1], it[1])), text
            )
        case {"Fn::If": [condition, yes, no]}:
            result = yes if names[condition] else no
        case {"Fn::Equals": [left, right]}:
            result = str(left) == right
        case {"Fn::Not": [condition]}:
            result = not condition
    return result


@cache
def decided(file: str, **given: str) -> Template:
    """Return what a stack with these parameters has of a template."""
    document = read(ROOT / file)
    names: dict[str, Any] = {}
    for name, declared in document["Parameters"].items():
        names[name] = declared.get("Default", name)
    names |= given
    names |= resolve(document["Conditions"], names)
    stack: Template = resolve(document, names)
    for name, resource in document["Resources"].items():
        if not names.get(resource.get("Condition"), True):
            del stack["Resources"][name]
    return stack


def staged(stage: str = "production", **changed: str) -> Template:
    """Return a stage's stack of template.yaml, with its parameters but for some."""
    return decided("template.yaml", **parameters(stage) | changed)


def properties_by_name(stack: Template, kind: str) -> dict[str, Any]:
    """Return the properties of each resource of a type."""
    return {
        name: each.get("Properties", {})
        for name, each in stack["Resources"].items()
        if each["Type"] == kind
    }
