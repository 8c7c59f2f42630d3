"""Reads template.yaml with the parameters of a stage in samconfig.toml."""

import tomllib
from typing import Any

from tools import ROOT
from tools.local.template import read_stack


def parameters(stage: str) -> dict[str, str]:
    """Return the parameters of a stage in samconfig.toml."""
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    pairs = config[stage]["deploy"]["parameters"]["parameter_overrides"]
    return dict(pair.split("=", 1) for pair in pairs)


def read_stage(stage: str = "production", **values: str) -> dict[str, Any]:
    """Return the template of a stage; the values override parameters in samconfig.toml."""
    return read_stack("template.yaml", **parameters(stage) | values)
