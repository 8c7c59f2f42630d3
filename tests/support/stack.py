"""Read the translated template, and the parameters of its stages."""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from tools import ROOT

Template = dict[str, Any]


def parameters(stage: str) -> dict[str, str]:
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    return dict(
        pair.split("=", 1) for pair in config[stage]["deploy"]["parameters"]["parameter_overrides"]
    )


def of_type(stack: Template, kind: str) -> dict[str, Any]:
    return {
        name: each.get("Properties", {})
        for name, each in stack["Resources"].items()
        if each["Type"] == kind
    }


def only(stack: Template, kind: str) -> Any:
    (properties,) = of_type(stack, kind).values()
    return properties


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def statements(stack: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, role in of_type(stack, "AWS::IAM::Role").items():
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield name, statement


def references(value: Any) -> set[str]:
    """Name each logical id, parameter and pseudo parameter that a value refers to."""
    text = json.dumps(value)
    return {
        *re.findall(r'"(?:Ref|Fn::GetAtt)": \[?"([\w:]+)', text),
        *re.findall(r"\$\{([\w:]+)[.}]", text),
    }
