"""Reads openapi.yaml for the local service."""

from typing import Any

import yaml

from tools import ROOT


def load_openapi() -> Any:
    """Read openapi.yaml."""
    return yaml.safe_load((ROOT / "openapi.yaml").read_text("utf-8"))


def examples() -> list[dict[str, Any]]:
    """Return the examples of a new animal in openapi.yaml."""
    body = load_openapi()["paths"]["/pets"]["post"]["requestBody"]
    named_examples = body["content"]["application/json"]["examples"]
    return [example["value"] for example in named_examples.values()]
