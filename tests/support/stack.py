"""Reads the templates of stacks, with the parameters of each stage in samconfig.toml."""

import tomllib
from functools import cache
from typing import Any

from tools import ROOT
from tools.local.template import read, resolve

Template = dict[str, Any]
_read_once = cache(read)


def parameters(stage: str) -> dict[str, str]:
    """Return the parameters of a stage in samconfig.toml."""
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    pairs = config[stage]["deploy"]["parameters"]["parameter_overrides"]
    return dict(pair.split("=", 1) for pair in pairs)


@cache
def read_stack(file: str, **values: str) -> Template:
    """Return the template of a stack that has these values of parameters."""
    stack: Template = resolve(_read_once(ROOT / file), values)
    return stack


def read_stage(stage: str = "production", **values: str) -> Template:
    """Return the template of a stage; the values override parameters in samconfig.toml."""
    return read_stack("template.yaml", **parameters(stage) | values)
