"""The translated template, per stage."""

import tomllib
from typing import Any

import pytest

from tools import ROOT
from tools.packaging.translate import translate

STAGES = ("staging", "production")

Template = dict[str, Any]


def parameters(stage: str) -> dict[str, str]:
    """The stage's values in samconfig.toml."""
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    return dict(pair.split("=", 1) for pair in config[stage]["deploy"]["parameters"]["parameter_overrides"])


@pytest.fixture(scope="session")
def stages() -> dict[str, Template]:
    """Each stage's stack, as AWS would make it."""
    return {stage: translate(parameters(stage)) for stage in STAGES}


@pytest.fixture(params=STAGES)
def stack(stages: dict[str, Template], request: pytest.FixtureRequest) -> Template:
    """The stack of one stage after the other."""
    return stages[request.param]
