"""Resolve what a template refers to."""

import string
from collections import ChainMap
from collections.abc import MutableMapping
from typing import Any


class _Substitution(string.Template):
    idpattern = r"[\w:.]+"


def resolve(value: Any, names: MutableMapping[str, Any]) -> Any:  # noqa: PLR0911 - one for each form
    """Put values where a template refers to names, such as `Stage`, `AWS::Region` or `Role.Arn`."""
    match value:
        case list():
            return [resolve(each, names) for each in value]
        case {"Ref": name}:
            return names[name]
        case {"Fn::GetAtt": [resource, attribute]}:
            return names[f"{resource}.{attribute}"]
        case {"Fn::Sub": [text, own]}:
            return _Substitution(text).substitute(ChainMap(own, names))
        case {"Fn::Sub": text}:
            return _Substitution(text).substitute(names)
        case dict():
            return {key: resolve(each, names) for key, each in value.items()}
    return value
